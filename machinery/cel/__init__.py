"""CEL expressions over devices, the selectors of DeviceClasses and ResourceClaims.

Start at `device_selector.py`. The library behind it (docs/design/010-dra.md) is imported when the first
expression is compiled, so that clusters without devices do not pay for it.
"""
