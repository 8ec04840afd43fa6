"""Where a Service's pods are: EndpointSlices, Endpoints, and EndpointSlices that mirror Endpoints.

`slices`, `subsets` and `mirroring` decide (objects in, writes out); `members` keeps which pods a Service
selects; the `*_controller` modules watch and write. Start with `slices`.

Source: kube-controller-manager 1.36, endpointslice-controller, endpoints-controller and
endpointslice-mirroring-controller.
"""
