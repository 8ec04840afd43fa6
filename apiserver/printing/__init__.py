"""Parts of every kind's columns: `columns` (Column, Columns, Row), `cells` (ages, selectors).

The columns of a kind are beside its other rules, in `nominee.apiserver.kinds`; the REST front makes Tables
of them.
"""
