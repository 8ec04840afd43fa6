"""`python -m nominee.localcluster.etcd --dir D`: becomes etcd."""

from nominee.localcluster.etcd.server import main

if __name__ == "__main__":
    main()
