"""What the columns of every kind are made of: `columns` (Column, Columns, Row), `cells` (ages, selectors).

The columns of a kind are beside its other rules, in `nominee.apiserver.kinds`; the REST front makes Tables
of them.
"""
