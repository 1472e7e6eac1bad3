"""Compile loop.c for the Python that runs this: python build.py."""

import os
import subprocess
import sys
import sysconfig

import motioncue

config = sysconfig.get_config_vars()
command = [*os.environ.get("CC", "cc").split(), "-O2", "-Wall", "-Wextra", "loop.c", "-o", "loop"]
command += [f'-DPYTHON="{sys.executable}"', f"-I{sysconfig.get_path('include')}", f"-I{motioncue.get_include()}"]
command += [f"-L{config['LIBDIR']}", f"-L{config['LIBPL']}", f"-Wl,-rpath,{config['LIBDIR']}"]
command += [f"-lpython{config['LDVERSION']}", *config["LINKFORSHARED"].split(), *config["LIBS"].split(), "-lm"]
subprocess.run(command, check=True)
