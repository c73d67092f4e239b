"""Legible rows: every row carries its own identity, exactly, in f32, f16 and bf16.

A row's elements are digits 1..128, which every dtype here holds exactly and which are never 0, NaN or
infinite. They spell, over and over along the head dimension,

    check, serial mod 128, who, serial / 128 mod 128, serial / 128^2

where `who` tells keys from values and names head and sequence, both modulo 8, and `check` ties all of it together.
The serial is unique to each position ever appended in a trace, in each layer. So a row of a rejected draft differs
from the row that took its place, and a row of layer 33 from that of layer 1. Dimensions below 5 spell the first of
these only; below 3 a shorter code is used.

Heads and sequences from 8 on are named by the ranges in which the digits lie: sixteen ranges of 128 numbers, still
whole, and exact in every dtype. Digits 0, 2 and 4 spell head / 8, to the base 16; digits 1 and 3 sequence / 8.
So small caches have small numbers. How many serials, heads and sequences narrow rows can name is bounded
(`kvspec.rows.serials`), and a trace that needs more is refused.

Legible rows are small whole numbers, which a lossy cache might store exactly by luck. So `fill="bits"` makes rows
of arbitrary bits: NaN, infinities, subnormals and minus zero are among them. `fill="edges"` makes rows of values
at which casts go wrong (`kvspec.rows.fills`). Both are known by their bytes, each in its own head and
sequence, as key or as value. What is to be cast, and rows of edges, begin with legible digits: many values are
cast to one, and no two rows may be alike afterwards. Rows of few arbitrary numbers may be alike by chance: of one
f16 number, one pair in 2^16.

Rows of `fill="alike"` are a, b, c, d and again a. They are equal in all sequences and caches and at many
positions, as if many requests began with the same words. Rows of the other fills in `ALIKE` are equal in a part
and unlike all others in the rest. The equal part is the keys in `keys_alike`, the values in `values_alike`, and
one head in `first_alike` and `last_alike`. In `but_key_alike` and `but_value_alike` it is all but the key, or the
value, of the last head. They are known by their content, no longer by their place, so what shares rows by content
is exercised. Rows of the fills in `IN_RUNS` are a, a, a, b, b, c, d, d, in whole or in a part. So neighbours are
equal, within a call and from one call to the next.

Attention is tried on `fill="random"`, numbers between -2 and 2 that every dtype holds exactly. It is shown on
`fill="even"`. There keys are zeros, so that every score is 0. Values are the number of the row, 1 for a, 2 for b,
so the output is the mean of the numbers of the rows seen. Queries are random too. They can be so large that one
row outweighs all others (`huge`), so small that none does (`tiny`), or `zero`. RoPE is shown on `fill="ramp"`,
whose keys are 1, 2, 3, ... from element to element, and whose values are those of `even`.

Rows of a cache in a form (`kvspec.forms`) are legible and random in another way: they are rows that the form
keeps to the bit, see `kvspec.rows.form_rows`. Rows of other fills are rounded there; they are known by lying within
the step of what was handed in.

Numbers of 8 digits stay what they are if an engine cuts them to bf16 or TF32. So `fill="fine"` and queries that
are `fine` have as many digits as their dtype. Long caches are asked about with needles (ATTN-44): `fill="hay"` has
values that are next to nothing, legible numbers times 2^-24. With `fill="needle"` some rows have one large element
each, and the others are hay. These are the first and the last row of a call, and rows with serials at powers of
two and one before, from 16 on.

Values of latent rows are the first elements of their keys, whatever the fill; keys of `even` and `ramp` are legible
there. Values of `fill="copies"` are so in any cache, and keys are those of `random`.
"""
