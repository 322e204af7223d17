/* The runner's loop: spin on the request page, call `forward`, wait for the device, echo the nonce.
 *
 * A module for CPython that needs no header but Python's own; the driver's functions are looked up by name.
 * What lies on the judge's clock beside `forward` is as little as can be: two event records, one wait, and a
 * look at whether the output is where and what it was the last time. Everything here runs in the candidate's
 * own process: nothing rests on it.
 *
 *     serve(request, answer, layout, forward, nothing, slots, others, describe, fail)
 *
 * request, answer: addresses of the two pages. layout: the words and codes of evaluator.runner.layout, in the
 * order of `enum`. forward(*slot) is called for CALL, nothing(*slot) in its place for DISPATCH; others(operation)
 * for what is none of CALL, EMPTY, DISPATCH, BARE and LEAVE; describe(output) writes where an output lies and raises
 * where it is none; fail() writes the error that is being handled and returns the code. The interpreter's lock is held while spinning.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <stdint.h>

#if defined(__x86_64__)
#define RELAX() __builtin_ia32_pause()
#else
#define RELAX() __asm__ volatile("yield")
#endif

enum { NONCE, OPERATION, SLOT, CALL, EMPTY, LEAVE, BARE, DISPATCH, ECHO, EVENT_NS, CODE, OK, FIRST_OUTPUT, WORDS };

typedef int (*create_fn)(void **, unsigned);
typedef int (*record_fn)(void *, void *);
typedef int (*elapsed_fn)(float *, void *, void *);
typedef int (*plain_fn)(void);
typedef int (*name_fn)(int, const char **);

static create_fn event_create;
static record_fn event_record;
static elapsed_fn event_elapsed;
static plain_fn synchronize;
static name_fn error_text;
static void *begin_event, *end_event;
static PyObject *data_ptr_name, *shape_name, *stride_name, *dtype_name;

static int failed(int code, const char *what) {
  if (!code) return 0;
  const char *text = NULL;
  if (error_text) error_text(code, &text);
  PyErr_Format(PyExc_RuntimeError, "CUDA error: %s (%s)", text ? text : "unknown", what);
  return 1;
}

static int look_up(void) {
  if (synchronize) return 0;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) {
    PyErr_SetString(PyExc_RuntimeError, "libcuda.so.1 cannot be loaded");
    return -1;
  }
  event_create = (create_fn)dlsym(driver, "cuEventCreate");
  event_record = (record_fn)dlsym(driver, "cuEventRecord");
  event_elapsed = (elapsed_fn)dlsym(driver, "cuEventElapsedTime");
  error_text = (name_fn)dlsym(driver, "cuGetErrorString");
  plain_fn found = (plain_fn)dlsym(driver, "cuCtxSynchronize");
  if (!event_create || !event_record || !event_elapsed || !found) {
    PyErr_SetString(PyExc_RuntimeError, "the driver lacks a function");
    return -1;
  }
  if (failed(event_create(&begin_event, 0), "event") || failed(event_create(&end_event, 0), "event")) return -1;
  synchronize = found;
  return 0;
}

/* What the last output was: one tensor is compared by its address, shape, strides and dtype. */
typedef struct {
  PyObject *type, *pointer, *shape, *stride, *dtype;
} Known;

static void forget(Known *known) {
  Py_CLEAR(known->type);
  Py_CLEAR(known->pointer);
  Py_CLEAR(known->shape);
  Py_CLEAR(known->stride);
  Py_CLEAR(known->dtype);
}

/* 1: the output is as it was; 0: it is not, or cannot be told. */
static int unchanged(Known *known, PyObject *output) {
  if (PyTuple_Check(output) || PyList_Check(output)) return 0;
  PyObject *pointer = PyObject_CallMethodNoArgs(output, data_ptr_name);
  PyObject *shape = pointer ? PyObject_GetAttr(output, shape_name) : NULL;
  PyObject *stride = shape ? PyObject_CallMethodNoArgs(output, stride_name) : NULL;
  PyObject *dtype = stride ? PyObject_GetAttr(output, dtype_name) : NULL;
  if (!dtype) {
    PyErr_Clear();
    Py_XDECREF(pointer);
    Py_XDECREF(shape);
    Py_XDECREF(stride);
    forget(known);
    return 0;
  }
  int same = known->pointer && known->type == (PyObject *)Py_TYPE(output) && known->dtype == dtype &&
             PyObject_RichCompareBool(known->pointer, pointer, Py_EQ) == 1 &&
             PyObject_RichCompareBool(known->shape, shape, Py_EQ) == 1 &&
             PyObject_RichCompareBool(known->stride, stride, Py_EQ) == 1;
  PyErr_Clear();
  if (same) {
    Py_DECREF(pointer);
    Py_DECREF(shape);
    Py_DECREF(stride);
    Py_DECREF(dtype);
    return 1;
  }
  forget(known);
  Py_INCREF(Py_TYPE(output));
  known->type = (PyObject *)Py_TYPE(output);
  known->pointer = pointer;
  known->shape = shape;
  known->stride = stride;
  known->dtype = dtype;
  return 0;
}

static PyObject *serve(PyObject *self, PyObject *arguments) {
  unsigned long long request_address, answer_address;
  PyObject *layout, *forward, *nothing, *slots, *others, *describe, *fail;
  if (!PyArg_ParseTuple(arguments, "KKO!OOO!OOO", &request_address, &answer_address, &PyTuple_Type, &layout, &forward, &nothing,
                        &PyList_Type, &slots, &others, &describe, &fail))
    return NULL;
  uint64_t at[WORDS];
  if (PyTuple_GET_SIZE(layout) != WORDS) {
    PyErr_SetString(PyExc_ValueError, "the layout has another number of words");
    return NULL;
  }
  for (int i = 0; i < WORDS; ++i) at[i] = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(layout, i));
  if (PyErr_Occurred() || look_up()) return NULL;

  volatile uint64_t *request = (volatile uint64_t *)(uintptr_t)request_address;
  volatile uint64_t *answer = (volatile uint64_t *)(uintptr_t)answer_address;
  uint64_t last = answer[at[ECHO]];
  PyObject *output = NULL;
  Known known = {0};
  int alive = 1;
  while (alive) {
    uint64_t nonce;
    while ((nonce = request[at[NONCE]]) == last) RELAX();
    last = nonce;
    uint64_t operation = request[at[OPERATION]], code = at[OK];
    int broken = 0;
    if (operation == at[CALL] || operation == at[EMPTY] || operation == at[DISPATCH]) {
      float elapsed_ms = 0;
      broken = failed(event_record(begin_event, NULL), "record");
      if (!broken && operation != at[EMPTY]) {
        uint64_t slot = request[at[SLOT]];
        PyObject *inputs = slot < (uint64_t)PyList_GET_SIZE(slots) ? PyList_GET_ITEM(slots, (Py_ssize_t)slot) : NULL;
        PyObject *fresh = inputs ? PyObject_CallObject(operation == at[CALL] ? forward : nothing, inputs) : NULL;
        if (!inputs) PyErr_SetString(PyExc_IndexError, "no such slot");
        broken = fresh == NULL;
        if (fresh && operation == at[CALL])
          Py_XSETREF(output, fresh);
        else
          Py_XDECREF(fresh);
      }
      if (!broken) broken = failed(event_record(end_event, NULL), "record") || failed(synchronize(), "synchronize");
      if (!broken && output && !unchanged(&known, output)) {
        PyObject *described = PyObject_CallOneArg(describe, output);
        broken = described == NULL;
        if (broken) forget(&known);
        Py_XDECREF(described);
      }
      if (!broken) {
        broken = failed(event_elapsed(&elapsed_ms, begin_event, end_event), "elapsed");
        answer[at[EVENT_NS]] = elapsed_ms > 0 ? (uint64_t)(elapsed_ms * 1e6) : 0;
      }
    } else if (operation == at[LEAVE]) {
      alive = 0;
    } else if (operation != at[BARE]) {
      PyObject *done = PyObject_CallFunction(others, "K", (unsigned long long)operation);
      broken = done == NULL;
      Py_XDECREF(done);
    }
    if (broken) {
      PyObject *type, *value, *trace;
      PyErr_Fetch(&type, &value, &trace);
      PyErr_NormalizeException(&type, &value, &trace);
      if (trace && value) PyException_SetTraceback(value, trace);
      PyObject *said = PyObject_CallOneArg(fail, value ? value : Py_None);
      code = said ? PyLong_AsUnsignedLongLong(said) : 0;
      Py_XDECREF(said);
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(trace);
      PyErr_Clear();
    }
    answer[at[CODE]] = code;
    __sync_synchronize();
    answer[at[ECHO]] = nonce;
  }
  Py_XDECREF(output);
  forget(&known);
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"serve", serve, METH_VARARGS, "Answer posts until LEAVE."}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "ratchet_loop", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_ratchet_loop(void) {
  data_ptr_name = PyUnicode_InternFromString("data_ptr");
  shape_name = PyUnicode_InternFromString("shape");
  stride_name = PyUnicode_InternFromString("stride");
  dtype_name = PyUnicode_InternFromString("dtype");
  return PyModule_Create(&module);
}
