"""Answers to what views ask, a module per kind of question. The bus enters by each of them."""
