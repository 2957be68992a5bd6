"""Containers: whose variables are whose, and what drops their values."""

import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture(autouse=True)
def clean():
    yield
    fs.Session.reset("")


def make(container, value=1.0, name="v"):
    with fs.container(container):
        return fs.Variable(value, name=name)


def test_sessions_share_the_values_in_a_named_container():
    v, own = make("shared"), fs.Variable(5.0)
    with fs.Session() as one, fs.Session() as two:
        one.run([v.initializer, own.initializer])
        one.run(v.assign_add(1.0))
        assert two.run(v) == 2
        with pytest.raises(fs.errors.FailedPreconditionError):
            two.run(own)
    with fs.Session() as three:
        assert three.run(v) == 2, "the container outlives its sessions"


def test_graphs_share_by_name():
    make("shared")
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
    with fs.Graph().as_default():
        again, other = make("shared", 7.0), make("shared", 7.0, "w")
        with fs.Session() as sess:
            assert sess.run(again) == 1
            with pytest.raises(fs.errors.FailedPreconditionError, match='"w"'):
                sess.run(other)


def test_containers_nest_and_the_empty_one_is_the_sessions_own():
    with fs.container("outer"):
        with fs.container("inner"):
            a = fs.Variable(1.0)
        with fs.container(""):
            b = fs.Variable(1.0)
        c = fs.Variable(1.0)
    assert [v.op.get_attr("container") for v in (a, b, c)] == ["inner", "", "outer"]


@pytest.mark.parametrize(
    ("names", "left"), [(None, []), (["a"], ["b"]), (["a", "b"], []), (["x"], ["a", "b"])]
)
def test_reset_drops_the_values_in_the_named_containers(names, left):
    variables = {name: make(name) for name in "ab"}
    own = fs.Variable(1.0)
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        sess.run(variables["a"])
        fs.Session.reset("", names)
        for name, v in variables.items():
            if name in left:
                assert sess.run(v) == 1
            else:
                with pytest.raises(fs.errors.FailedPreconditionError):
                    sess.run(v)
        assert sess.run(own) == 1


def test_sessions_still_share_after_a_reset():
    v = make("shared")
    with fs.Session() as one, fs.Session() as two:
        one.run(v.initializer)
        assert two.run(v) == 1
        fs.Session.reset("", ["shared"])
        two.run(v.assign(3.0))
        assert one.run(v) == 3


def test_reset_checks_its_arguments():
    with pytest.raises(TypeError, match="list of containers' names, got 'a'"):
        fs.Session.reset("", "a")
    with pytest.raises(fs.errors.NotFoundError, match="expected target"):
        fs.Session.reset("there")
    with pytest.raises(fs.errors.InvalidArgumentError, match='address as "host:port"'):
        fs.Session.reset("grpc://there")


def test_a_variable_of_another_shape_under_the_same_name_is_refused():
    v = make("shared", [1.0, 2.0])
    with fs.Session() as one:
        one.run(v.initializer)
        with fs.Graph().as_default():
            w = make("shared", 1.0)
            with (
                fs.Session() as two,
                pytest.raises(ValueError, match=r'variable "v" of shape \[2\], expected \[\]'),
            ):
                two.run(w.initializer)
            fs.Session.reset("", ["shared"])
            with fs.Session() as two:
                two.run(w.initializer)
                assert two.run(w) == 1


def test_interactive_sessions_end_in_any_order(graph):
    x = fs.constant(1.0)
    one = fs.InteractiveSession()
    two = fs.InteractiveSession()
    assert fs.get_default_session() is two
    one.close()
    assert fs.get_default_session() is two and x.eval() == 1
    two.close()
    assert fs.get_default_session() is None


def test_the_default_session_of_a_with_block_is_put_back(graph):
    with fs.Session() as outer:
        with fs.Session() as inner:
            assert fs.get_default_session() is inner
        assert inner.is_closed
        assert fs.get_default_session() is outer
