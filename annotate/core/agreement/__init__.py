"""How much annotators agree with each other, and a judge with them."""
