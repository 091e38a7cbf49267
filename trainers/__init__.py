"""Trainers that turn the contrast between skill-injected and skill-free rollouts into learning."""
