"""Glue between the pages and the package: a room for what a person does, the server that puts all together.

The only package code that imports Streamlit; nothing here imports TensorFlow, GPflow or scikit-learn.
"""
