"""What a kubelet may see: which nodes a user is (`identity.py`), what their pods refer to (`graph.py`), and
the Node authorizer over both. What it may write is further restricted by admission/node_restriction.py."""
