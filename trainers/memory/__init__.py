"""Skill banks and experience stores."""
