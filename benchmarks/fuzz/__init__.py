"""Fuzzers of everything that reads what strangers wrote: one file per target.

A target is a module with a :class:`~benchmarks.fuzz.target.FuzzTarget` named ``TARGET``; its name stands in
:data:`~benchmarks.fuzz.target.NAMES`.
"""
