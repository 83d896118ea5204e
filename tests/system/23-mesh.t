#!/bin/bash
# Four hosts are a hypercube: meshes run where neighbours are neighbours, and the ranks are where they must be.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 4 --elmer 'topology = cube'
install_programs

by_rank() { field "$1" '" ".join(p["host"] for p in j["processors"])'; }
said() { # PREFIX NODE RANK
    on "$2" cat "/tmp/$1.$3"
}
mesh=$(submit alice --mesh 2x2 --each -o '/tmp/mesh.%r' sh -c 'echo $ELMER_RANK $ELMER_MESH $ELMER_HOSTS $(hostname); sleep 60')
wait_for 10 'a mesh of 2x2 runs' running "$mesh"
like 'equery shows its shape' "$(on 1 equery "$mesh")" ' a mesh of 2x2: '
is 'and its rows for programs' "$(field "$mesh" 'j["mesh_rows"]')" 2
is 'row by row' "$(by_rank "$mesh")" 'ws1 ws2 ws3 ws4'
for rank in 0 1 2 3; do
    wait_for 10 "rank $rank has said something" said mesh $((rank + 1)) $rank
    is 'where it must be' "$(said mesh $((rank + 1)) $rank)" "$rank 2x2 ws1:ws2:ws3:ws4 ws$((rank + 1))"
done
as alice 1 ekill "$mesh"
wait_for 10 'it ends' over "$mesh"

line=$(submit alice --mesh 1x4 -o /dev/null sleep 60)
wait_for 10 'a row of four runs' running "$line"
is 'along a Gray code' "$(by_rank "$line")" 'ws1 ws2 ws4 ws3'
as alice 1 ekill "$line"
wait_for 10 'it ends' over "$line"

three=$(submit alice -o /dev/null 3 sleep 60)
wait_for 10 'three processors are a row of three' running "$three"
is 'of the whole cube' "$(by_rank "$three")" 'ws1 ws2 ws4'
like 'which equery shows, though none was asked for' "$(on 1 equery "$three")" ' a mesh of 1x3: '
is 'and for programs' "$(field "$three" 'j["mesh_rows"]')" 1
small=$(submit bob -o /dev/null 1 sleep 60)
wait_for 10 'what it leaves is for another' running "$small"
is 'there' "$(by_rank "$small")" ws3
# After a restart it is the same cube.
on 1 systemctl restart elmer
next=$(submit carol -o /dev/null --mesh 1x2 true)
as alice 1 ekill "$three"
wait_for 10 'a place is free for two' over "$next"
is 'beside the one that is left' "$(by_rank "$next")" 'ws1 ws2'
as bob 1 ekill "$small"
as alice 1 esubmit --mesh 2x3 true 2>"$tmp/said"
is 'what is larger than the cube is refused' $? 1
like 'and says why' "$(cat "$tmp/said")" 'only 4'
like 'a host more needs an edit and a restart' "$(on 1 eadmin token --hosts ws9 2>&1 >/dev/null)" 'ws9 is not in "hosts = \.\.\." of elmer\.conf yet: as topology = cube, add it and restart elmer before the host joins'
as alice 1 esubmit --mesh 2x2x2 true 2>/dev/null
is 'what is no mesh, too' $? 2
done_testing
