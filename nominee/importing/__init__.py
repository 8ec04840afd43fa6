"""`nominee import`: the objects of another cluster, written into this one so that its state continues.

Start with `importer`, which writes them; `preparation` makes of a document the object to create, `order`
says what comes before what, `report` lists what could not come. docs/design/027-import.md has the reasons.
"""
