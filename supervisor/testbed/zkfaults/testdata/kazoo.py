# Drives a ZooKeeper server with kazoo: its recipes lean on much that a mere create and get do not.
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, InvalidACLError, NoAuthError, NodeExistsError, NoNodeError, RolledBackError
from kazoo.exceptions import RuntimeInconsistency
from kazoo.security import make_digest_acl


def client(**more):
    c = KazooClient(hosts=sys.argv[1], timeout=4, **more)
    c.start(timeout=10)
    return c


a, b = client(), client()

# the plain operations
assert a.create("/app/x", b"1", makepath=True) == "/app/x"
data, stat = a.get("/app/x")
assert data == b"1" and stat.version == 0 and stat.czxid == stat.mzxid
path, stat = a.create("/app/y", b"", include_data=True)
assert path == "/app/y" and stat.version == 0
assert sorted(a.get_children("/app")) == ["x", "y"]
assert a.create("/app/s-", sequence=True, ephemeral=True) == "/app/s-0000000002"
for error, call in [
    (NodeExistsError, lambda: a.create("/app/x")),
    (NoNodeError, lambda: a.get("/none")),
    (BadVersionError, lambda: a.set("/app/x", b"", version=7)),
]:
    try:
        call()
    except error:
        continue
    raise AssertionError(error)

# transactions
t = a.transaction()
t.check("/app/x", version=0)
t.create("/app/t", b"t")
t.set_data("/app/x", b"2", version=0)
t.delete("/app/y")
results = t.commit()
assert results[0] is True and results[1] == "/app/t" and results[2].version == 1 and results[3] is True, results
t = a.transaction()
t.create("/app/gone")
t.check("/app/x", version=0)
t.delete("/app/t")
results = t.commit()
assert [type(r) for r in results] == [RolledBackError, BadVersionError, RuntimeInconsistency], results
assert a.exists("/app/gone") is None and a.exists("/app/t")

# watches
seen, done = [], threading.Event()


@a.DataWatch("/app/watched")
def data_watch(data, stat):
    seen.append(data)
    if data == b"last":
        done.set()


kids, grown = [], threading.Event()


@a.ChildrenWatch("/app")
def children_watch(children):
    kids.append(sorted(children))
    if "watched" in children:
        grown.set()


b.create("/app/watched", b"first")
assert grown.wait(10), kids
b.set("/app/watched", b"last")
assert done.wait(10), seen
assert seen[0] is None and seen[-1] == b"last", seen

# auth
a.add_auth("digest", "alice:secret")
a.create("/secret", b"s", acl=[make_digest_acl("alice", "secret", all=True)])
try:
    b.get("/secret")
    raise AssertionError("read without the password")
except NoAuthError:
    pass
b.add_auth("digest", "alice:secret")
assert b.get("/secret")[0] == b"s"
assert a.get_acls("/secret")[0][0].id.id.startswith("alice:")
try:
    a.set_acls("/secret", [])
    raise AssertionError("an empty ACL was taken")
except InvalidACLError:
    pass

# locks: the second holder gets it when the first one lets go, and when the first one's session ends
la, lb = a.Lock("/locks/l", "a"), b.Lock("/locks/l", "b")
assert la.acquire()
assert not lb.acquire(blocking=False)
got = threading.Event()
waiter = threading.Thread(target=lambda: lb.acquire(timeout=20) and got.set())
waiter.start()
assert not got.wait(0.2)
la.release()
assert got.wait(10)
waiter.join()
c = client()
assert not c.Lock("/locks/l", "c").acquire(blocking=False)
lc = c.Lock("/locks/l", "c")
again = threading.Event()
waiter = threading.Thread(target=lambda: lc.acquire(timeout=20) and again.set())
waiter.start()
assert not again.wait(0.2)
b.stop()
assert again.wait(10)
waiter.join()

# an election
led = []
election = a.Election("/election", "a")
election.run(lambda: led.append("a"))
assert led == ["a"]

for k in (a, c):
    k.stop()
    k.close()
print("all is well")
