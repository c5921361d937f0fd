"""Slurm's accounting: slurmdbd with a MariaDB, on loopback."""
import os
import shutil
import subprocess

from lab import Missing, end, free_port, on_path, wait_for

CONF = """AuthType=auth/munge
AuthInfo=socket={base}/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=places
StoragePass=places
StorageLoc=places
PidFile={base}/slurmdbd.pid
LogFile={base}/slurmdbd.log
"""


class Accounting:
    def __init__(self, base):
        lacking = on_path("slurmdbd", "mariadbd", "mariadb-install-db", "sacct")
        if lacking:
            raise Missing(f"no {' and no '.join(lacking)} here (Debian: slurmdbd, mariadb-server)")
        self.base, self.port, self.database = base, free_port(), free_port()
        self.daemons = []
        data, socket = f"{base}/mysql", f"{base}/mysql.sock"
        options = ["--no-defaults", f"--datadir={data}"]
        made = ["mariadb-install-db", *options, "--user=root", "--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.start(
            "mariadbd", *options, "--user=root", f"--socket={socket}", f"--port={self.database}", "--bind-address=127.0.0.1",
            f"--pid-file={base}/mysql.pid",
        )
        client = ["mariadb", "--no-defaults", f"--socket={socket}", "-e"]
        text = "create user places@'%' identified by 'places'; grant all on *.* to places@'%'; create user places@localhost " \
            "identified by 'places'; grant all on *.* to places@localhost"
        wait_for("MariaDB", lambda: subprocess.run([*client, text], capture_output=True).returncode == 0)
        with open(f"{base}/slurmdbd.conf", "w") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(CONF.format(base=base, port=self.port, database=self.database))

    def start(self, program, *args):
        path = f"{os.environ['PATH']}:/usr/sbin"
        env = {**os.environ, "SLURM_CONF": f"{self.base}/slurm.conf"}
        command = [shutil.which(program, path=path), *args]
        log = open(f"{self.base}/{program}.out", "a")
        self.daemons.append(subprocess.Popen(command, env=env, cwd=self.base, stdout=log, stderr=log))

    def add_cluster(self, env):
        """Starts slurmdbd; slurm.conf must exist."""
        self.start("slurmdbd", "-D")
        command = ["sacctmgr", "-i", "add", "cluster", "places"]
        env = {**os.environ, **env}
        wait_for("slurmdbd", lambda: subprocess.run(command, env=env, capture_output=True).returncode == 0, 120)

    def close(self):
        for daemon in reversed(self.daemons):
            end(daemon)
