# The commands of a newcomer. Each installs what is missing (or prints the command that does), configures and builds.
# TRIFACTOR_CUDA=auto|on|off and TRIFACTOR_SCALARS=f64,... are passed on:  make test TRIFACTOR_CUDA=off
TRIFACTOR_CUDA ?= auto
TRIFACTOR_SCALARS ?= f32,f64,c32,c64
JOBS ?= $(shell nproc)
export TRIFACTOR_CUDA TRIFACTOR_SCALARS JOBS

# Where `make install` installs; DESTDIR comes before it.
PREFIX ?= /usr/local

.PHONY: help configure build program demo install test test-all packages clean

help:
	@echo 'make demo       build the program, then factor and solve a few systems on what is there'
	@echo 'make test       build and run all tests, and the host tests with sanitizers'
	@echo 'make test-all   the same with all scalars in every build, and CUDA for architectures 80 and 90'
	@echo 'make build      build the library, build/trifactor and the tests'
	@echo 'make program    build the library and build/trifactor alone'
	@echo 'make install    build the library and the program, and install them beneath PREFIX, $(PREFIX)'
	@echo 'make clean      remove build/'
	@echo 'TRIFACTOR_CUDA=auto|on|off and TRIFACTOR_SCALARS=f32,f64,c32,c64 may follow each of them'

configure: packages
	cmake --preset release -DTRIFACTOR_CUDA=$(TRIFACTOR_CUDA) -DTRIFACTOR_SCALARS=$(TRIFACTOR_SCALARS) \
	  -DTRIFACTOR_QUICK_KERNELS=OFF

build: configure
	cmake --build build -j $(JOBS)

program: configure
	cmake --build build -j $(JOBS) --target trifactor_program

install: configure
	cmake --build build -j $(JOBS) --target installed_files
	cmake --install build --prefix $(PREFIX)

demo: program
	build/trifactor demo

test: packages
	scripts/run_tests

test-all: packages
	scripts/run_tests --all

packages:
	@scripts/install_packages

clean:
	rm -rf build
