"""Where a Service's pods are: EndpointSlices, Endpoints, and EndpointSlices that mirror Endpoints.

Start with `slices`; with `subsets` and `mirroring` it decides (objects in, writes out). `members` has the
pods that a Service selects, `filling` distributes endpoints over slices, `pending_writes` has the writes that
the informer does not show yet. `shell` has the controllers.

Source: kube-controller-manager 1.36, endpointslice-controller, endpoints-controller and
endpointslice-mirroring-controller.
"""
