#!/bin/bash
# Three workstations of a plain Debian 12 and the repository of ./package: what the README says, word by word, with apt.
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/../system/jobs.sh"
. "$(dirname "$0")/../system/readme.sh"
. "$(dirname "$0")/packages.sh"
only_on_nodes 'the machines have Elmer already'

ok './package' packages one "$top"
mkdir "$tmp/nothing"
LAB_BUILD=$tmp/nothing lab_up 3 --bare 2>/dev/null
cp -r "$made/one" "$("$lab" path state)/home/packages"
by_root() { # K COMMAND: nobody to ask, and nothing but what was built here and what the node has of Debian
    on "$1" env DEBIAN_FRONTEND=noninteractive sh -c "${2/#apt install/apt-get -qq -y -o APT::Sandbox::User=root install}"
}
for k in 1 2 3; do
    on $k sh -c 'rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*
        echo "deb [trusted=yes] file:/home/packages ./" >/etc/apt/sources.list.d/elmer.list'
    ok "ws$k: apt update" by_root $k 'apt-get -qq -o APT::Sandbox::User=root update'
done
on 1 sh -c 'mkdir -p /etc/elmer && printf "[elmer]\nallocator = v1\n" >/etc/elmer/elmer.conf' # the nodes share this machine's processors with other work
follow_readme by_root
for k in 1 2 3; do
    is "ws$k: nothing has failed" "$(on $k systemctl list-units --failed --no-legend)" ''
done
done_testing
