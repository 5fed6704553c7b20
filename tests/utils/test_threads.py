"""One thread for linear algebra, and as many as before behind it."""

from threadpoolctl import ThreadpoolController

from skfairdp._utils import BLAS


def test_no_library_of_linear_algebra_is_left_out():
    import torch  # noqa: F401

    loaded = ThreadpoolController().select(user_api="blas").lib_controllers
    assert {pool.filepath for pool in loaded} == {pool.filepath for pool in BLAS.lib_controllers}


def test_one_thread_inside_and_as_many_as_before_behind():
    """Of whatever libraries there are; some have no threads to limit."""

    def threads():
        return [pool.num_threads for pool in ThreadpoolController().select(user_api="blas").lib_controllers]

    with BLAS.limit(limits=2):
        inside, before = BLAS.wrap(limits=1)(threads), threads()
        one = [1] * len(before)
        assert inside() == inside() == one and threads() == before
        with BLAS.limit(limits=1):
            assert threads() == one
        assert threads() == before
