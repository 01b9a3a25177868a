# Becomes the first process of a container, about as a container runtime makes it. It is started in new namespaces, with
#   ROOT=the disk  NAME=the hostname  ACCOUNTS= LIFE= what is shared with the test  CGROUP=ro|rw  READONLY=yes or nothing
# and the words that the first process is.
set -e
mount --bind "$ROOT" "$ROOT"
cd "$ROOT"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 -o "$CGROUP" cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev # without the shm and pts that runtimes may leave out
mknod -m 666 dev/null c 1 3
mknod -m 666 dev/urandom c 1 9
mkdir -p srv/accounts
: >>srv/life
mount --bind "$ACCOUNTS" srv/accounts
mount --bind "$LIFE" srv/life
hostname "$NAME"
[ -z "$READONLY" ] || mount -o remount,bind,ro "$ROOT"
pivot_root . .
umount -l .
cd /
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/ "$@"
