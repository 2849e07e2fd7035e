"""The Python `Schedule`, traces and sampling."""
