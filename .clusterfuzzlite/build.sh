#!/bin/bash -eu
exec bash -eu "$SRC/attest/fuzz/oss-fuzz/build.sh"
