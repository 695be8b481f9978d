"""Arrays and tables in, Plotly figures out. Pure: no page, no model, no file.

Colours of text and background are left to whoever shows the figure, so that one figure reads in
light and dark; `for_export` fixes them for a file.
"""
