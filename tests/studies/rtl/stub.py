"""The toy machine in a folder with a module `generated`: what generated hardware needs, without hardware."""

from tests.toy_target.target import TARGET as TARGET
