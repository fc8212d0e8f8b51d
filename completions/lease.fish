# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_lease_global_optspecs
    string join \n d/database-url= table= db-timeout= q/quiet v/verbose h/help V/version
end

function __fish_lease_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_lease_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_lease_using_subcommand
    set -l cmd (__fish_lease_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c lease -n "__fish_lease_needs_command" -s d -l database-url -d 'Where the database is: a libpq URI or key=value string; without it PGHOST, PGUSER, PGSERVICE... as with psql' -r
complete -c lease -n "__fish_lease_needs_command" -l table -d 'The table that holds the leases: schema.table, or a bare name for one in public' -r
complete -c lease -n "__fish_lease_needs_command" -l db-timeout -d 'The most that one database operation may take, connecting included' -r
complete -c lease -n "__fish_lease_needs_command" -s q -l quiet -d 'Errors only: a skipped run says nothing'
complete -c lease -n "__fish_lease_needs_command" -s v -l verbose -d 'Say what is done, step by step, on stderr'
complete -c lease -n "__fish_lease_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease -n "__fish_lease_needs_command" -s V -l version -d 'Print version'
complete -c lease -n "__fish_lease_needs_command" -f -a "run" -d 'Run a job while holding a lease'
complete -c lease -n "__fish_lease_needs_command" -f -a "claim" -d 'Take a lease, for scripts'
complete -c lease -n "__fish_lease_needs_command" -f -a "renew" -d 'Extend a lease that is held'
complete -c lease -n "__fish_lease_needs_command" -f -a "release" -d 'Give a lease back, or take it from whoever has it'
complete -c lease -n "__fish_lease_needs_command" -f -a "status" -d 'Show who holds what, and until when'
complete -c lease -n "__fish_lease_needs_command" -f -a "init" -d 'Make the table, or print the SQL that makes it'
complete -c lease -n "__fish_lease_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c lease -n "__fish_lease_using_subcommand run" -l ttl -d 'How long the lease outlives its last heartbeat (100ms to 30days)' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l wait -d 'Keep trying for that long if someone else holds it; `forever` is allowed [default: no waiting]' -r
complete -c lease -n "__fish_lease_using_subcommand run" -s E -l conflict-exit-code -d 'Exit code when someone else holds the lease' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l name -d 'The readable part of the holder; a random part is always added [default: host name]' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l hold-at-least -d 'Keep others out until this long after the claim, however short the job was' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l heartbeat -d 'Time between renewals [default: ttl / 3, less if --grace leaves less]' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l grace -d 'Between TERM and KILL when the job is stopped [default: ttl / 6, at most 10s, less if --heartbeat leaves less]' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l on-loss -d 'What becomes of the job when the lease is lost' -r -f -a "stop\t'It is stopped, and lease exits 76'
continue\t'The loss is reported, and the job runs on unprotected'"
complete -c lease -n "__fish_lease_using_subcommand run" -s d -l database-url -d 'Where the database is: a libpq URI or key=value string; without it PGHOST, PGUSER, PGSERVICE... as with psql' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l table -d 'The table that holds the leases: schema.table, or a bare name for one in public' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l db-timeout -d 'The most that one database operation may take, connecting included' -r
complete -c lease -n "__fish_lease_using_subcommand run" -s q -l quiet -d 'Errors only: a skipped run says nothing'
complete -c lease -n "__fish_lease_using_subcommand run" -s v -l verbose -d 'Say what is done, step by step, on stderr'
complete -c lease -n "__fish_lease_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease -n "__fish_lease_using_subcommand run" -s V -l version -d 'Print version'
complete -c lease -n "__fish_lease_using_subcommand claim" -l ttl -d 'How long the lease outlives its last heartbeat (100ms to 30days)' -r
complete -c lease -n "__fish_lease_using_subcommand claim" -l wait -d 'Keep trying for that long if someone else holds it; `forever` is allowed [default: no waiting]' -r
complete -c lease -n "__fish_lease_using_subcommand claim" -s E -l conflict-exit-code -d 'Exit code when someone else holds the lease' -r
complete -c lease -n "__fish_lease_using_subcommand claim" -l name -d 'The readable part of the holder; a random part is always added [default: host name]' -r
complete -c lease -n "__fish_lease_using_subcommand claim" -l holder -d 'An exact identity, to claim again (extend) what that holder has: it is then good for --ttl from now on; without --ttl as before where that is later' -r
complete -c lease -n "__fish_lease_using_subcommand claim" -l format -d 'How the answer is printed' -r -f -a "shell\t'Lines for a POSIX shell\'s eval'
json\t'One JSON object'"
complete -c lease -n "__fish_lease_using_subcommand claim" -s d -l database-url -d 'Where the database is: a libpq URI or key=value string; without it PGHOST, PGUSER, PGSERVICE... as with psql' -r
complete -c lease -n "__fish_lease_using_subcommand claim" -l table -d 'The table that holds the leases: schema.table, or a bare name for one in public' -r
complete -c lease -n "__fish_lease_using_subcommand claim" -l db-timeout -d 'The most that one database operation may take, connecting included' -r
complete -c lease -n "__fish_lease_using_subcommand claim" -s q -l quiet -d 'Errors only: a skipped run says nothing'
complete -c lease -n "__fish_lease_using_subcommand claim" -s v -l verbose -d 'Say what is done, step by step, on stderr'
complete -c lease -n "__fish_lease_using_subcommand claim" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease -n "__fish_lease_using_subcommand claim" -s V -l version -d 'Print version'
complete -c lease -n "__fish_lease_using_subcommand renew" -l ttl -d 'How long the lease is good from now on; without --ttl as before where that is later (100ms to 30days)' -r
complete -c lease -n "__fish_lease_using_subcommand renew" -l holder -d 'Whose lease it is [default: LEASE_HOLDER]' -r
complete -c lease -n "__fish_lease_using_subcommand renew" -l fence -d 'The fence of the term [default: FENCE]' -r
complete -c lease -n "__fish_lease_using_subcommand renew" -l format -d 'How the answer is printed' -r -f -a "shell\t'Lines for a POSIX shell\'s eval'
json\t'One JSON object'"
complete -c lease -n "__fish_lease_using_subcommand renew" -s d -l database-url -d 'Where the database is: a libpq URI or key=value string; without it PGHOST, PGUSER, PGSERVICE... as with psql' -r
complete -c lease -n "__fish_lease_using_subcommand renew" -l table -d 'The table that holds the leases: schema.table, or a bare name for one in public' -r
complete -c lease -n "__fish_lease_using_subcommand renew" -l db-timeout -d 'The most that one database operation may take, connecting included' -r
complete -c lease -n "__fish_lease_using_subcommand renew" -s q -l quiet -d 'Errors only: a skipped run says nothing'
complete -c lease -n "__fish_lease_using_subcommand renew" -s v -l verbose -d 'Say what is done, step by step, on stderr'
complete -c lease -n "__fish_lease_using_subcommand renew" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease -n "__fish_lease_using_subcommand renew" -s V -l version -d 'Print version'
complete -c lease -n "__fish_lease_using_subcommand release" -l hold-at-least -d 'Keep others out until this long after the claim' -r
complete -c lease -n "__fish_lease_using_subcommand release" -l holder -d 'Whose lease it is [default: LEASE_HOLDER]' -r
complete -c lease -n "__fish_lease_using_subcommand release" -l fence -d 'The fence of the term [default: FENCE; with --force only what is given here]' -r
complete -c lease -n "__fish_lease_using_subcommand release" -s d -l database-url -d 'Where the database is: a libpq URI or key=value string; without it PGHOST, PGUSER, PGSERVICE... as with psql' -r
complete -c lease -n "__fish_lease_using_subcommand release" -l table -d 'The table that holds the leases: schema.table, or a bare name for one in public' -r
complete -c lease -n "__fish_lease_using_subcommand release" -l db-timeout -d 'The most that one database operation may take, connecting included' -r
complete -c lease -n "__fish_lease_using_subcommand release" -l force -d 'Take the lease from whoever has it; with --fence only if it is still that term'
complete -c lease -n "__fish_lease_using_subcommand release" -s q -l quiet -d 'Errors only: a skipped run says nothing'
complete -c lease -n "__fish_lease_using_subcommand release" -s v -l verbose -d 'Say what is done, step by step, on stderr'
complete -c lease -n "__fish_lease_using_subcommand release" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease -n "__fish_lease_using_subcommand release" -s V -l version -d 'Print version'
complete -c lease -n "__fish_lease_using_subcommand status" -l watch -d 'Show again and again until interrupted; a word that is no duration is a KEY [default interval: 2s]' -r
complete -c lease -n "__fish_lease_using_subcommand status" -l format -d 'How the leases are shown' -r -f -a "table\t'Columns for people'
json\t'A JSON array of objects'"
complete -c lease -n "__fish_lease_using_subcommand status" -s d -l database-url -d 'Where the database is: a libpq URI or key=value string; without it PGHOST, PGUSER, PGSERVICE... as with psql' -r
complete -c lease -n "__fish_lease_using_subcommand status" -l table -d 'The table that holds the leases: schema.table, or a bare name for one in public' -r
complete -c lease -n "__fish_lease_using_subcommand status" -l db-timeout -d 'The most that one database operation may take, connecting included' -r
complete -c lease -n "__fish_lease_using_subcommand status" -l all -d 'Show the free ones too'
complete -c lease -n "__fish_lease_using_subcommand status" -l exit-code -d 'Exit with 0 if every named key is held, with 1 if not'
complete -c lease -n "__fish_lease_using_subcommand status" -s q -l quiet -d 'Errors only: a skipped run says nothing'
complete -c lease -n "__fish_lease_using_subcommand status" -s v -l verbose -d 'Say what is done, step by step, on stderr'
complete -c lease -n "__fish_lease_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease -n "__fish_lease_using_subcommand status" -s V -l version -d 'Print version'
complete -c lease -n "__fish_lease_using_subcommand init" -s d -l database-url -d 'Where the database is: a libpq URI or key=value string; without it PGHOST, PGUSER, PGSERVICE... as with psql' -r
complete -c lease -n "__fish_lease_using_subcommand init" -l table -d 'The table that holds the leases: schema.table, or a bare name for one in public' -r
complete -c lease -n "__fish_lease_using_subcommand init" -l db-timeout -d 'The most that one database operation may take, connecting included' -r
complete -c lease -n "__fish_lease_using_subcommand init" -l print -d 'Write the SQL to stdout instead; needs no database'
complete -c lease -n "__fish_lease_using_subcommand init" -l with-fencing -d 'Add lease_check_fence and its table, in the schema of --table'
complete -c lease -n "__fish_lease_using_subcommand init" -s q -l quiet -d 'Errors only: a skipped run says nothing'
complete -c lease -n "__fish_lease_using_subcommand init" -s v -l verbose -d 'Say what is done, step by step, on stderr'
complete -c lease -n "__fish_lease_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease -n "__fish_lease_using_subcommand init" -s V -l version -d 'Print version'
complete -c lease -n "__fish_lease_using_subcommand help; and not __fish_seen_subcommand_from run claim renew release status init help" -f -a "run" -d 'Run a job while holding a lease'
complete -c lease -n "__fish_lease_using_subcommand help; and not __fish_seen_subcommand_from run claim renew release status init help" -f -a "claim" -d 'Take a lease, for scripts'
complete -c lease -n "__fish_lease_using_subcommand help; and not __fish_seen_subcommand_from run claim renew release status init help" -f -a "renew" -d 'Extend a lease that is held'
complete -c lease -n "__fish_lease_using_subcommand help; and not __fish_seen_subcommand_from run claim renew release status init help" -f -a "release" -d 'Give a lease back, or take it from whoever has it'
complete -c lease -n "__fish_lease_using_subcommand help; and not __fish_seen_subcommand_from run claim renew release status init help" -f -a "status" -d 'Show who holds what, and until when'
complete -c lease -n "__fish_lease_using_subcommand help; and not __fish_seen_subcommand_from run claim renew release status init help" -f -a "init" -d 'Make the table, or print the SQL that makes it'
complete -c lease -n "__fish_lease_using_subcommand help; and not __fish_seen_subcommand_from run claim renew release status init help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
