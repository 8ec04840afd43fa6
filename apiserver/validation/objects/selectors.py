"""Label selectors as parts of objects (apimachinery/pkg/apis/meta/v1/validation 1.36)."""

from __future__ import annotations

from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.objects.metadata import validate_labels
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import meta


def label_selector(path: str, selector: meta.LabelSelector) -> list[Cause]:
    """Check the labels and expressions of a selector."""
    errors = validate_labels(f"{path}.matchLabels", selector.matchLabels) if selector.matchLabels else []
    for index, expression in enumerate(selector.matchExpressions):
        at = f"{path}.matchExpressions[{index}]"
        match expression.operator:
            case "In" | "NotIn":
                if not expression.values:
                    errors.append(
                        field.required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
                    )
            case "Exists" | "DoesNotExist":
                if expression.values:
                    errors.append(
                        field.forbidden(
                            f"{at}.values",
                            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                        )
                    )
            case other:
                errors.append(field.invalid(f"{at}.operator", other, "not a valid selector operator"))
        errors += field.check(f"{at}.key", expression.key, names.qualified_name)
        for number, value in enumerate(expression.values):
            errors += field.check(f"{at}.values[{number}]", value, names.label_value)
    return errors
