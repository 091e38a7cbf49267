"""The tiny policy: a small Qwen3-shaped model with a word tokenizer, warm-started by behaviour cloning.

It is a real Hugging Face checkpoint folder, so everything that trains it trains a large model too.
"""
