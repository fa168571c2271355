"""Learners made of what other libraries hold."""

from olx.interop import optax as optax
