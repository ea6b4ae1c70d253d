/* A library with the functions of NVML that the agent asks for; what it answers stands in `fake`. */
#include <stdio.h>
#include <string.h>

enum { OK, UNINITIALIZED = 1, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, NO_DRIVER = 9,
       TIMEOUT = 10, LOST = 15, MOST = 16 };

typedef unsigned int u;
typedef unsigned long long ull;

struct gpu { u lost, divided, silent, action, core; ull used; u pid; ull held; u share; };

/* Laid out as the test expects it. */
struct { u gpus, broken, events, unused; ull xid; u about, anonymous; u padding; struct gpu gpu[MOST]; } fake;

static u sessions;
struct place { u index; };
static struct place places[MOST];

struct memory { ull total, free, used; };
struct memory2 { u version; ull total, reserved, free, used; };
struct pci { char legacy[16]; u domain, bus, device, id, subsystem; char text[32]; };
struct event { void *device; ull type, data; u instance, compute; };
struct field { u id, scope; long long at, latency; u type, result; union { u number; ull wide; double real; } value; };
struct process { u pid; ull used; u instance, compute; };
struct sample { u pid; ull at; u sm, memory, encoder, decoder; };
struct utilization { u gpu, memory; };

static int whole(void) { return fake.broken ? (int)fake.broken : sessions ? OK : UNINITIALIZED; }

static int known(struct place *place) {
    if (whole()) return whole();
    if (place < places || place >= places + MOST || place->index >= fake.gpus) return INVALID;
    return fake.gpu[place->index].lost ? LOST : OK;
}

#define ASK(device) { int answer = known(device); if (answer) return answer; }

int nvmlInitWithFlags(u flags) { (void)flags; if (fake.broken) return fake.broken; sessions++; return OK; }
int nvmlShutdown(void) { if (!sessions) return UNINITIALIZED; sessions--; return OK; }
const char *nvmlErrorString(int code) { (void)code; return "an error"; }
int nvmlSystemGetDriverVersion(char *text, u size) { snprintf(text, size, "550.54.15"); return whole(); }
int nvmlDeviceGetCount_v2(u *count) { *count = fake.gpus; return whole(); }

int nvmlDeviceGetHandleByIndex_v2(u index, void **device) {
    if (index >= fake.gpus) return INVALID;
    places[index].index = index;
    *device = &places[index];
    return known(*device);
}

int nvmlDeviceGetUUID(struct place *device, char *text, u size) {
    ASK(device)
    snprintf(text, size, "GPU-%u", device->index);
    return OK;
}
int nvmlDeviceGetMinorNumber(struct place *device, u *minor) { ASK(device) *minor = device->index; return OK; }
int nvmlDeviceGetName(struct place *device, char *text, u size) {
    ASK(device)
    snprintf(text, size, "NVIDIA A100-SXM4-80GB");
    return OK;
}
int nvmlDeviceGetMemoryInfo(struct place *device, struct memory *memory) {
    ASK(device)
    memory->total = 80ull << 30;
    memory->used = fake.gpu[device->index].used + (1ull << 29);
    memory->free = memory->total - memory->used;
    return OK;
}
int nvmlDeviceGetMemoryInfo_v2(struct place *device, struct memory2 *memory) {
    ASK(device)
    if (memory->version != 0x02000028) return 25;
    memory->total = 80ull << 30;
    memory->reserved = 1ull << 29;
    memory->used = fake.gpu[device->index].used;
    memory->free = memory->total - memory->used - memory->reserved;
    return OK;
}
int nvmlDeviceGetPciInfo_v3(struct place *device, struct pci *pci) {
    ASK(device)
    memset(pci, 0, sizeof *pci);
    snprintf(pci->text, sizeof pci->text, "00000000:%02X:00.0", 0x3B + device->index);
    return OK;
}
int nvmlDeviceGetMigMode(struct place *device, u *current, u *pending) {
    ASK(device)
    if (fake.gpu[device->index].silent) return UNSUPPORTED;
    *current = *pending = fake.gpu[device->index].divided;
    return OK;
}

int nvmlEventSetCreate(void **set) { *set = &fake; return whole(); }
int nvmlEventSetFree(void *set) { return set == &fake ? whole() : INVALID; }
int nvmlDeviceRegisterEvents(struct place *device, ull kinds, void *set) {
    ASK(device)
    if (kinds != 8 || set != &fake) return INVALID;
    return fake.gpu[device->index].silent ? UNSUPPORTED : OK;
}
int nvmlEventSetWait_v2(void *set, struct event *event, u milliseconds) {
    if (set != &fake || milliseconds) return INVALID;
    if (whole()) return whole();
    if (!fake.events) return TIMEOUT;
    fake.events--;
    memset(event, 0, sizeof *event);
    event->device = fake.anonymous ? 0 : &places[fake.about];
    event->type = 8;
    event->data = fake.xid;
    return OK;
}
int nvmlDeviceGetFieldValues(struct place *device, int count, struct field *values) {
    ASK(device)
    for (int i = 0; i < count; i++) {
        values[i].result = values[i].id == 230 && !fake.gpu[device->index].silent ? OK : UNSUPPORTED;
        values[i].value.number = fake.gpu[device->index].action;
    }
    return OK;
}

int nvmlDeviceGetUtilizationRates(struct place *device, struct utilization *use) {
    ASK(device)
    if (fake.gpu[device->index].divided) return UNSUPPORTED;
    use->gpu = fake.gpu[device->index].core;
    use->memory = 1;
    return OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(struct place *device, u *count, struct process *found) {
    ASK(device)
    struct gpu *gpu = &fake.gpu[device->index];
    u there = gpu->pid ? 1 : 0, room = *count;
    *count = there;
    if (!there) return OK;
    if (room < there || !found) return TOO_SMALL;
    found[0] = (struct process){gpu->pid, gpu->held, ~0u, ~0u};
    return OK;
}
int nvmlDeviceGetProcessUtilization(struct place *device, struct sample *found, u *count, ull since) {
    ASK(device)
    struct gpu *gpu = &fake.gpu[device->index];
    if (gpu->divided) return UNSUPPORTED;
    if (!gpu->pid || since >= 2000) return NOT_FOUND;
    u room = *count;
    *count = 3;
    if (!found || room < 3) return TOO_SMALL;
    found[0] = (struct sample){gpu->pid, 1000, gpu->share, 0, 0, 0};
    found[1] = (struct sample){gpu->pid, 2000, gpu->share + 20, 0, 0, 0};
    found[2] = (struct sample){gpu->pid, 3000, 4000000000u, 0, 0, 0};
    return OK;
}
