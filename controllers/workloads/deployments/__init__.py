"""The deployment controller: `rollout` decides (pure), `controller` is the shell.

`sizes` has the arithmetic, `sets` what replica sets say of themselves, `progress` the conditions.
Source: kube-controller-manager 1.36, pkg/controller/deployment.
"""
