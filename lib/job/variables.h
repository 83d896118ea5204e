/* variables.h - the variables that Elmer sets for a job's processes, whatever the submission says of them. elmer leaves
 * them out of what the user gave, and a ticket (lib/ticket) covers all others: nothing else is added on the way. */
#ifndef LIB_JOB_VARIABLES_H
#define LIB_JOB_VARIABLES_H

/* What a job asks for of memory, to who signs it: libelmer's word to rsd/tickets, which no process of a job has. */
#define MEMORY_VARIABLE "ELMER_MEMORY_BYTES"
#define JOB_VARIABLES                                                                                                  \
    "ELMER_JOB_ID", "ELMER_JOB_NAME", "ELMER_NPROCS", "ELMER_RANK", "ELMER_HOSTS", "ELMER_HOSTFILE",                   \
        "ELMER_SUBMIT_HOST", "ELMER_SUBMIT_DIR", "ELMER_TMPDIR", "ELMER_MESH", "ELMER_ADDRESS", "ELMER_ARRAY_ID",      \
        "ELMER_ARRAY_INDEX", "ELMER_ARRAY_TASKS", "ELMER_ARRAY_LINE", "ELMER_ARRAY_LINES", MEMORY_VARIABLE
/* Of jobs with a virtual machine: these are set, and those are left out of what the user gave. */
#define JOB_VARIABLES_PVM       "PVM_TMP", "PVM_WD", "PVM_RSH", "PVMDLOGMAX", "PVMSOCK"
#define JOB_VARIABLES_PVM_UNSET "PVM_VMID", "PVMTMPDIR", "PVMNETSOCKPORT", "PVM_HOSTER", "PVM_TASKER", "PVM_RM"

/* The command of a job that is a virtual machine and nothing else (esubmit -P, rsd/pvm/hold.c). */
#define JOB_MACHINE ELMER_LIBEXECDIR "/elmer-machine"

/* A courier of the job (rsd/courier): its command, and the numbers of these processes, from that on. */
#define JOB_COURIER "elmer-courier"
enum { JOB_COURIERS = 1 << 30 };

#endif
