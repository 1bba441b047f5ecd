"""Programs that some side treats apart, and why."""

from __future__ import annotations


def _names(**modules: str) -> frozenset[str]:
    return frozenset(
        f"{module}.{name}" for module, names in modules.items() for name in names.split()
    )


LOOSE = _names(
    views="row_without_ellipsis empty_key",
    shapes="expanded_by_none",
    assignments="with_new_axis integers_rows value_with_leading_ones integers_one_row "
    "integers_through_transpose mask_of_columns integers_columns slice_and_integers",
    modes="integer_constant_written",
    loops="rows_swapped_by_integers",
    kinds="double_plus_integers",
)
"""Indexing that is beyond the standard, and dtypes that it does not mix: array-api-strict
refuses.
"""

UNTRACEABLE = _names(
    assignments="mask_of_columns mask_augmented mask_augmented_by_leaf mask_is_a_copy_when_read",
    refused="assigned_through_mask_too_long",
)
"""Shapes that depend on the values of a mask, which a trace does not know."""

UNSPOILT = _names(
    modes="write_through_data_is_not_noticed write_through_view_of_data_is_not_noticed "
    "data_zeroed_between_forward_and_backward",
)
"""What was saved is written to unnoticed, which spoils the gradient.

Where arrays cannot be written, it stays the right one.
"""

DEAR = _names(
    assignments="integer_and_integers integers_matrix_of_indices integers_one_row "
    "integers_pairs integers_through_transpose integers_through_view mask_all_false "
    "mask_from_constant mask_of_rows mask_through_transpose slice_and_integers "
    "slices_in_both_axes through_reshape",
    kinds="broadcast_column broadcast_vector_into_matrix complex_assigned_real complex_slice "
    "complex_times_imaginary_number complex_twins integers_arithmetic integers_bitwise "
    "part_of_slice_written",
    loops="clipped_by_masks doubling_of_a_prefix elements_sorted_by_swaps halving "
    "power_iteration_in_place",
    operands="empty_array matmul_operator power_by_array twin_of_atan2 twins_of_trigonometry",
    shapes="expanded expanded_and_squeezed expanded_by_none moved_axis permuted "
    "reshape_of_contiguous_rows reshape_of_slice squeezed",
    stale="assigned_through_a_mask_of_a_constant chain_of_views chosen multiplied_as_matrix "
    "reduced viewed_again",
    views="four_levels_written_at_each twin_through_view",
)
"""JAX compiles for these alone what takes a third of the time of all: there they belong to the long
level.
"""
