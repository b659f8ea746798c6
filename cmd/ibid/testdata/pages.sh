# The shell of the pages: servers run in the background on a free port, and requests to
# the ports of the pages reach them, or the scripted model.
set -euo pipefail
exec 2>&1
address= server= key=
finish() { [ -z "$server" ] || kill "$server" 2>/dev/null || true; }
trap finish EXIT
swap() {
	swapped=()
	local word
	for word in "$@"; do
		word=${word//http:\/\/127.0.0.1:8080/$address}
		word=${word//https:\/\/docs.example.org/$address}
		word=${word//http:\/\/localhost:11434\/v1/$SCRIPTED}
		word=${word//http:\/\/localhost:8000\/v1/$SCRIPTED}
		word=${word//http:\/\/localhost:8081\/v1/$SCRIPTED}
		word=${word//0.0.0.0:8080/127.0.0.1:0}
		# The servers of stores: user, host and port.
		word=${word//ibid@db.example.org/${POSTGRES:-}}
		swapped+=("${word//ibid_…/$key}")
	done
}
ibid() {
	swap "$@"
	case $1 in
	serve)
		finish
		if [ -n "$server" ]; then wait "$server" || true; fi
		: >"$HOME/.served"
		IBID_ADDR=127.0.0.1:0 command ibid "${swapped[@]}" >"$HOME/.served" 2>"$HOME/.served.err" &
		server=$!
		for _ in $(seq 600); do
			address=$(sed -n '1s/^listening on //p' "$HOME/.served")
			if [ -n "$address" ] && command curl -fsS "$address/readyz" >/dev/null 2>&1; then return; fi
			kill -0 "$server" 2>/dev/null || { cat "$HOME/.served.err"; return 1; }
			sleep 0.1
		done
		echo 'the server is not ready'
		return 1 ;;
	keys)
		command ibid "${swapped[@]}" >"$HOME/.key"
		cat "$HOME/.key"
		key=$(grep -oE 'ibid_[A-Za-z0-9_-]+' "$HOME/.key" | head -1 || true) ;;
	eval) # which reads a folder once for all blocks of a page
		case $* in *--data*) ;; *) swapped+=(--data "$HOME/.eval-${3//\//-}") ;; esac
		command ibid "${swapped[@]}" ;;
	*) command ibid "${swapped[@]}" ;;
	esac
}
curl() {
	swap "$@"
	command curl -fS --max-time 60 "${swapped[@]}"
}
