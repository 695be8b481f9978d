"""Glue between the pages and the package: the server, jobs, the current project, small widgets.

The only package code that imports Streamlit; nothing here imports TensorFlow, GPflow or scikit-learn.
"""
