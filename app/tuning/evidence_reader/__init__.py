"""The second span reader: trained over one right and several near passages of a document at once.

Spans of all passages of a group share one normalisation with a single "no answer" (Clark and Gardner 2018,
arXiv:1710.10723), and a third score marks the evidence token by token (Segal et al. 2020, arXiv:1909.13375).
"""
