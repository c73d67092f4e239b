"""Peers that compute on a GPU alone, and what they share: attention through block tables, without gathering."""
