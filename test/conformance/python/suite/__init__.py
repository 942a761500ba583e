"""Conformance suite that drives a felixd broker with the unmodified Python package felix-client."""
