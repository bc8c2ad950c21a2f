#!/bin/sh
# In the guest of softroce: runs MPI programs with every message between ranks over the InfiniBand device, and believes the device's own
# counters, not the library, that it was so.
#
#   over_verbs.sh BUILD LIST [checks]     LIST: a line for each run, `SECONDS RANKS PROGRAM`; PROGRAM is a path below BUILD
#
# A run passes when its program does, the device has sent and received messages for it, and nothing was sent over TCP. With `checks`, also
# what there is to say once: that the device is chosen unasked, the counters say no to TCP, little memory gives an error. No Python here:
# where the processor is emulated, it takes longer to start than most of the programs take to run.
build=$1 list=$2 checks=$3
counters=/sys/class/infiniband/rxe0/ports/1/hw_counters
export HEDDLE_SHM=0 HEDDLE_OFI_PROVIDER="verbs;ofi_rxm"

now() { cut -d. -f1 /proc/uptime; }
tcp_segments() { awk '$1 == "Tcp:" { n = $12 } END { print n }' /proc/net/snmp; }
fail() { echo "FAILED: $*"; failed=$((failed + 1)); }

# count: notes the counters; the differences to the last time in $sends, $receives, $packets, $tcp.
count() {
  read -r s <$counters/rdma_sends; read -r r <$counters/rdma_recvs; read -r p <$counters/sent_pkts; t=$(tcp_segments)
  sends=$((s - s0)) receives=$((r - r0)) packets=$((p - p0)) tcp=$((t - t0))
  s0=$s r0=$r p0=$p t0=$t
}
# Whether the last run used the device, and nothing else.
used_the_device() { [ "$sends" -gt 0 ] && [ "$receives" -gt 0 ] && [ "$tcp" -eq 0 ]; }

# run SECONDS RANKS PROGRAM: with its output in $output.
output=$(mktemp)
run() { "$build/bin/mpiexec" -timeout "$1" -n "$2" "$build/$3" >"$output" 2>&1; }

s0=0 r0=0 p0=0 t0=0 failed=0 passed=0
count

check_once() {
  # What the tool says where nobody asks for a provider.
  if (unset HEDDLE_OFI_PROVIDER; "$build/bin/heddle" info network --one-host) >"$output" 2>&1 &&
    grep -q '^chosen  *verbs;ofi_rxm on rxe0 10\.7\.7\.1$' "$output" && grep -q '^why  *the first of the providers found' "$output"; then
    echo "passed: heddle info network: $(sed -n 's/^chosen  *//p' "$output"): $(sed -n 's/^why  *//p' "$output")"
    passed=$((passed + 1))
  else
    fail "heddle info network does not choose the device"
    cat "$output"
  fi

  # The counters can say no: the same over TCP.
  count
  # shellcheck disable=SC2046 # three words
  if (export HEDDLE_OFI_PROVIDER="tcp;ofi_rxm"; run $(head -n 1 "$list")) && { count; ! used_the_device; } && [ "$tcp" -gt 0 ] && [ "$sends" -eq 0 ]; then
    echo "passed: a run over TCP shows as one: $sends sends, $tcp TCP segments"
    passed=$((passed + 1))
  else
    fail "a run over TCP: $sends sends, $tcp TCP segments"
    tail -c 2000 "$output"
  fi

  # Locked memory: too little to open the endpoint, and enough for that but not for what the provider takes at the first message. For a
  # root without the right to exceed it: another user might not reach this folder.
  for kilobytes in 8192 24576; do
    if (ulimit -l $kilobytes; exec setpriv --inh-caps -ipc_lock,-sys_resource --bounding-set -ipc_lock,-sys_resource "$build/bin/mpiexec" -timeout 100 -n 2 "$build/$(sed -n '1s/.* //p' "$list")") \
        >"$output" 2>&1 || ! grep -q "(\`ulimit -l\`) is $kilobytes KiB: raise it" "$output"; then
      fail "with $kilobytes KiB of locked memory there is no error that names the limit"
      tail -c 2000 "$output"
    else
      echo "passed: with $kilobytes KiB of locked memory: $(grep -m 1 -o 'MPI_Init.*' "$output")"
      passed=$((passed + 1))
    fi
  done
}

while read -r limit ranks program; do
  began=$(now)
  count
  run "$limit" "$ranks" "$program"
  status=$?
  count
  if [ $status -ne 0 ]; then
    fail "$program with $ranks ranks: status $status"
    tail -c 4000 "$output"
  elif ! used_the_device; then
    fail "$program with $ranks ranks: it ran, but not over the device: $sends sends, $receives receives, $tcp TCP segments"
  else
    echo "passed: $program with $ranks ranks: $sends sends, $receives receives, $packets packets, $(($(now) - began)) s"
    passed=$((passed + 1))
  fi
done <"$list"
[ -z "$checks" ] || check_once
echo "$passed passed, $failed failed, $(now) s since the guest's start"
[ "$failed" -eq 0 ]
