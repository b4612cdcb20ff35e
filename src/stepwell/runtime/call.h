/* Program: calls a compiled function: guards, outputs, arena and the call, without Python code.

   Calls that the guards refuse go to `miss`, Python code that converts the arguments or reports
   errors in them. A program for a device has no code here: `foreign` runs it on the arguments
   that the guards accept, device arrays included (resident.h). */
#ifndef STEPWELL_CALL_H
#define STEPWELL_CALL_H

#define PY_SSIZE_T_CLEAN
#include "memory.h"

#include <Python.h>
#include <structmember.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#if NPY_ABI_VERSION < 0x02000000
#define PyDataType_ELSIZE(descr) ((descr)->elsize)
#endif
#include "resident.h"

typedef int32_t (*entry_function)(const struct sw_runtime *, void *const *, const int64_t *, char *);
typedef void (*shapes_function)(const int64_t *, int64_t *);
typedef int64_t (*arena_function)(const int64_t *);
typedef int32_t (*checks_function)(const int64_t *);

enum { FEW = 4 }; /* maximum in-place results to compare with every other array */
enum { HEAVY_BYTES = 32 << 10, LARGE_BYTES = 1 << 20, LINE = 64 };
enum { ROOMY_CALLS = 64 }; /* calls in a row with a large arena half empty until it shrinks */

typedef struct { /* the requirements on one array; sizes < 0 are `?` */
  PyArray_Descr *descr;
  int type_num, rank;
  npy_intp *sizes;
  npy_intp bytes; /* of the array, -1 if a size is `?` */
} Guard;

typedef struct { /* dims[dim] must equal dims[other], or -other - 1 if `other` is negative */
  int dim;
  int64_t other;
} Equal;

typedef struct {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  entry_function entry;
  shapes_function shapes;
  checks_function checks; /* conditions on the `?`; NULL if there are none */
  arena_function arena_bytes;
  int64_t static_arena;
  int inputs, constants, outputs; /* buffers, in this order */
  int dims, result_dims, equals, heavy;
  struct sw_runtime limited;       /* for a program with its own limit of threads */
  const struct sw_runtime *threads; /* `limited`, or the runtime shared by all programs */
  int *into, updates;     /* for each output the input it may overwrite, else -1; their number */
  int *order, *updated;   /* inputs by address in the last call; for each its overwriting output */
  void **apart;           /* the inputs' addresses when last found disjoint; for static sizes */
  Guard *guards;          /* of inputs, then outputs */
  npy_intp *sizes;        /* storage of all guards' sizes */
  Equal *equal;
  void **constant_data;
  char *arena;
  int64_t capacity, recent; /* bytes of the arena; the maximum used since it was half empty */
  int arena_busy, roomy;    /* whether a call uses it; the calls since it was half empty */
  PyObject *keep, *miss, *failed;
  PyObject *foreign; /* foreign(arguments, outs) runs a device program; NULL for a C program */
} Program;

/* ---- arena --------------------------------------------------------------------------------- */

static char *arena_new(int64_t bytes) {
  if (bytes >= LARGE_BYTES) return sw_memory_new((size_t)bytes);
  void *p = NULL;
  return posix_memalign(&p, LINE, (size_t)bytes) ? NULL : p;
}

static void arena_free(char *p, int64_t bytes) {
  if (bytes >= LARGE_BYTES)
    sw_memory_free(p);
  else
    free(p);
}

/* Whether a large arena was half empty in many consecutive calls, so that it can shrink. */
static int arena_is_roomy(Program *p, int64_t bytes) {
  if (bytes > p->capacity / 2) return p->roomy = 0, p->recent = 0;
  if (bytes > p->recent) p->recent = bytes;
  return ++p->roomy >= ROOMY_CALLS;
}

/* Return the program's arena, grown to `bytes` or shrunk; a new one if another thread uses it. */
static char *arena_acquire(Program *p, int64_t bytes) {
  if (p->arena_busy) return arena_new(bytes);
  int roomy = p->capacity >= LARGE_BYTES && arena_is_roomy(p, bytes);
  if (p->capacity < bytes || roomy) {
    if (roomy) bytes = p->recent, p->roomy = 0, p->recent = 0;
    arena_free(p->arena, p->capacity);
    p->arena = arena_new(bytes);
    p->capacity = p->arena ? bytes : 0;
    if (p->arena == NULL) return NULL;
  }
  p->arena_busy = 1;
  return p->arena;
}

static void arena_release(Program *p, char *arena, int64_t bytes) {
  if (arena == p->arena)
    p->arena_busy = 0;
  else
    arena_free(arena, bytes);
}

/* ---- large results: arrays whose memory is reused after they are freed ---------------------- */

static void *large_malloc(void *unused, size_t bytes) {
  (void)unused;
  return sw_memory_new(bytes);
}

static void *large_calloc(void *unused, size_t n, size_t size) {
  (void)unused;
  void *p = size && n > SIZE_MAX / size ? NULL : sw_memory_new(n * size);
  return p ? memset(p, 0, n * size) : NULL;
}

static void *large_realloc(void *unused, void *old, size_t bytes) {
  (void)unused;
  void *p = sw_memory_new(bytes);
  if (p != NULL && old != NULL) {
    size_t room = sw_memory_room(old);
    memcpy(p, old, room < bytes ? room : bytes);
    sw_memory_free(old);
  }
  return p;
}

static void large_free(void *unused, void *p, size_t bytes) {
  (void)unused, (void)bytes;
  sw_memory_free(p);
}

static PyDataMem_Handler large_memory = {
    "stepwell", 1, {NULL, large_malloc, large_calloc, large_realloc, large_free}};
static PyObject *large_handler; /* a capsule of it */

static PyObject *new_result(const Guard *guard, npy_intp *sizes) {
  size_t bytes = (size_t)PyDataType_ELSIZE(guard->descr);
  for (int i = 0; i < guard->rank; i++) bytes *= (size_t)sizes[i];
  PyObject *before = NULL, *result;
  int large = bytes >= LARGE_BYTES;
  if (large && (before = PyDataMem_SetHandler(large_handler)) == NULL) return NULL;
  Py_INCREF(guard->descr);
  result = PyArray_NewFromDescr(&PyArray_Type, guard->descr, guard->rank, sizes, NULL, NULL, 0, NULL);
  if (large) {
    PyObject *ours = PyDataMem_SetHandler(before);
    Py_DECREF(before);
    if (ours == NULL) Py_CLEAR(result);
    Py_XDECREF(ours);
  }
  return result;
}

/* ---- one call ------------------------------------------------------------------------------ */

/* Whether `o` satisfies `guard`, contiguous and aligned; stores the sizes of its `?`. */
static inline int fits(const Guard *guard, PyObject *o, int64_t **dims) {
  if (!PyArray_CheckExact(o)) return 0;
  PyArrayObject *a = (PyArrayObject *)o;
  PyArray_Descr *d = PyArray_DESCR(a);
  if (d != guard->descr && !(d->type_num == guard->type_num && PyArray_ISNBO(d->byteorder))) return 0;
  if (PyArray_NDIM(a) != guard->rank) return 0;
  const int flags = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
  if ((PyArray_FLAGS(a) & flags) != flags) return 0;
  const npy_intp *sizes = PyArray_DIMS(a);
  for (int i = 0; i < guard->rank; i++) {
    if (guard->sizes[i] < 0)
      *(*dims)++ = sizes[i];
    else if (sizes[i] != guard->sizes[i])
      return 0;
  }
  return 1;
}

static inline int fits_all(Program *p, PyObject *const *args, void **buffers, int64_t *dims) {
  int64_t *next = dims;
  for (int i = 0; i < p->inputs; i++) {
    if (!fits(&p->guards[i], args[i], &next)) return 0;
    buffers[i] = PyArray_DATA((PyArrayObject *)args[i]);
  }
  for (int i = 0; i < p->equals; i++) {
    int64_t other = p->equal[i].other;
    if (dims[p->equal[i].dim] != (other < 0 ? -other - 1 : dims[other])) return 0;
  }
  return p->checks == NULL || p->checks(dims) == 0;
}

/* Return the size in bytes of an array that satisfies `guard`. */
static inline npy_intp bytes_of(const Guard *guard, PyObject *o) {
  return guard->bytes >= 0 ? guard->bytes : PyArray_NBYTES((PyArrayObject *)o);
}

static int overlap(PyObject *x, PyObject *y) {
  const char *a = PyArray_BYTES((PyArrayObject *)x), *b = PyArray_BYTES((PyArrayObject *)y);
  return a < b + PyArray_NBYTES((PyArrayObject *)y) && b < a + PyArray_NBYTES((PyArrayObject *)x);
}

/* Whether `out` fits result `k`: type and sizes match, writeable, disjoint from other arrays. */
static int usable(Program *p, int k, const npy_intp *sizes, PyObject *const *args, PyObject *out, PyObject **results) {
  Guard guard = p->guards[p->inputs + k];
  guard.sizes = (npy_intp *)sizes;
  int64_t *none = NULL;
  if (!fits(&guard, out, &none) || !PyArray_ISWRITEABLE((PyArrayObject *)out)) return 0;
  for (int i = 0; i < p->inputs; i++)
    if (overlap(out, args[i]) &&
        (i != p->into[k] || PyArray_DATA((PyArrayObject *)out) != PyArray_DATA((PyArrayObject *)args[i])))
      return 0;
  for (int i = 0; i < k; i++)
    if (overlap(out, results[i])) return 0;
  return 1;
}

/* Whether all inputs that results overwrite are writeable and disjoint from all other inputs.

   Inputs are kept sorted by address: the order, and often the addresses, stay the same from call to
   call. */
static int all_apart(Program *p, PyObject *const *args) {
  int same = p->dims == 0 ? 0 : -1;
  for (; same >= 0 && same < p->inputs; same++) {
    PyArrayObject *a = (PyArrayObject *)args[same];
    if (PyArray_DATA(a) != p->apart[same] || (p->updated[same] >= 0 && !PyArray_ISWRITEABLE(a))) break;
  }
  if (same == p->inputs) return 1;
#define START(i) PyArray_BYTES((PyArrayObject *)args[i])
  int *order = p->order;
  for (int n = 1; n < p->inputs; n++) {
    int at = order[n], k = n;
    const char *start = START(at);
    for (; k > 0 && START(order[k - 1]) > start; k--) order[k] = order[k - 1];
    order[k] = at;
  }
  const char *end = NULL, *written = NULL; /* the highest ends so far, and of written arrays */
  for (int n = 0; n < p->inputs; n++) {
    int i = order[n];
    PyArrayObject *a = (PyArrayObject *)args[i];
    const char *start = PyArray_BYTES(a), *last = start + bytes_of(&p->guards[i], args[i]);
    if (start == last) continue;
    if (p->updated[i] >= 0) {
      if (start < end || !PyArray_ISWRITEABLE(a)) return 0;
      if (last > written) written = last;
    } else if (start < written) {
      return 0;
    }
    if (last > end) end = last;
  }
#undef START
  for (int i = 0; i < p->inputs; i++) p->apart[i] = PyArray_DATA((PyArrayObject *)args[i]);
  return 1;
}

/* Return the results as a Program does: one array, or a tuple. Steals the references. */
static PyObject *packed(PyObject **results, int n) {
  if (n == 1) return results[0];
  PyObject *tuple = PyTuple_New(n);
  if (tuple == NULL)
    for (int i = 0; i < n; i++) Py_DECREF(results[i]);
  else
    for (int i = 0; i < n; i++) PyTuple_SET_ITEM(tuple, i, results[i]);
  return tuple;
}

/* Create the results, or take the caller's; -1 after an error, 0 if an `out` does not fit.

   outs    arrays for the results, None for those to be created; NULL for none
   update  whether results overwrite their arguments; `outs` may then contain None */
static int make_results(Program *p, PyObject *const *args, PyObject *const *outs, int update, const int64_t *dims,
                        PyObject **results, int64_t *bytes) {
  int64_t found[p->result_dims + 1];
  const int64_t *next = found;
  int apart = update && outs == NULL && p->updates > FEW && all_apart(p, args);
  if (update && outs == NULL && p->updates > FEW && !apart) return 0;
  if (p->result_dims) p->shapes(dims, found);
  const int known = apart && p->dims == 0 && p->result_dims == 0; /* overwritten inputs fit */
  for (int k = 0; k < p->outputs; k++) {
    const Guard *guard = &p->guards[p->inputs + k];
    if (known && p->into[k] >= 0) {
      Py_INCREF(results[k] = args[p->into[k]]);
      *bytes += guard->bytes;
      continue;
    }
    npy_intp sizes[NPY_MAXDIMS];
    for (int i = 0; i < guard->rank; i++) {
      sizes[i] = guard->sizes[i] < 0 ? *next++ : guard->sizes[i];
      if (sizes[i] < 0)
        return PyErr_Format(PyExc_ValueError, "result %d would have size %zd along axis %d", k,
                            (Py_ssize_t)sizes[i], i), -1;
    }
    PyObject *out = outs ? outs[k] : update && p->into[k] >= 0 ? args[p->into[k]] : Py_None;
    if (out != Py_None || (outs && !update)) {
      Guard wanted = *guard;
      wanted.sizes = sizes;
      int64_t *none = NULL;
      if (apart ? p->dims > 0 && !fits(&wanted, out, &none) : !usable(p, k, sizes, args, out, results)) return 0;
      results[k] = out;
      Py_INCREF(out);
    } else {
      results[k] = new_result(guard, sizes);
      if (results[k] == NULL) return -1;
    }
    *bytes += bytes_of(guard, results[k]);
  }
  return 1;
}

static int32_t run(Program *p, void **buffers, const int64_t *dims, int64_t bytes, int64_t scratch) {
  static char nothing[LINE];
  char *arena = nothing;
  if (scratch > 0 && (arena = arena_acquire(p, scratch)) == NULL) return PyErr_NoMemory(), -1;
  int32_t code;
  const entry_function entry = p->entry; /* `replace` may change both meanwhile */
  PyObject *failed = p->failed;
  if (p->heavy || bytes + scratch >= HEAVY_BYTES) {
    Py_BEGIN_ALLOW_THREADS
    code = entry(p->threads, buffers, dims, arena);
    Py_END_ALLOW_THREADS
  } else {
    code = entry(p->threads, buffers, dims, arena);
  }
  if (scratch > 0) arena_release(p, arena, scratch);
  if (code) {
    PyObject *ignored = PyObject_CallFunction(failed, "i", (int)code);
    Py_XDECREF(ignored);
    if (!PyErr_Occurred()) PyErr_Format(PyExc_RuntimeError, "the program failed with error %d", (int)code);
  }
  return code;
}

/* Whether `o` satisfies `guard`, on the host or on a device; stores the sizes of its `?`. */
static inline int fits_anywhere(const Guard *guard, PyObject *o, int64_t **dims) {
  if (!is_resident(o)) return fits(guard, o, dims);
  npy_intp sizes[NPY_MAXDIMS];
  if (resident_dtype(o)->type_num != guard->type_num || resident_sizes(o, sizes) != guard->rank) return 0;
  for (int i = 0; i < guard->rank; i++) {
    if (guard->sizes[i] < 0)
      *(*dims)++ = sizes[i];
    else if (sizes[i] != guard->sizes[i])
      return 0;
  }
  return 1;
}

/* The inputs that results overwrite, else None; NULL without error if they overlap on a device. */
static PyObject *updated_outs(Program *p, PyObject *const *args) {
  if (p->dims > 0) return NULL;
  PyObject *outs = PyTuple_New(p->outputs);
  for (int k = 0; outs != NULL && k < p->outputs; k++) {
    PyObject *out = p->into[k] < 0 ? Py_None : args[p->into[k]];
    int apart = out == Py_None || is_resident(out);
    for (int i = 0; apart && out != Py_None && i < p->inputs; i++) apart = i == p->into[k] || args[i] != out;
    if (!apart)
      Py_CLEAR(outs);
    else
      Py_INCREF(out), PyTuple_SET_ITEM(outs, k, out);
  }
  return outs;
}

static PyObject *tuple_of(PyObject *const *items, int n) {
  PyObject *tuple = PyTuple_New(n);
  for (int i = 0; tuple != NULL && i < n; i++) Py_INCREF(items[i]), PyTuple_SET_ITEM(tuple, i, items[i]);
  return tuple;
}

/* Call a program for a device, as `attempt` does. */
static int attempt_foreign(Program *p, PyObject *const *args, PyObject *const *outs, int update, PyObject **results) {
  int64_t dims[p->dims + 1], *next = dims;
  if (outs != NULL && !update) return 0;
  for (int i = 0; i < p->inputs; i++)
    if (!fits_anywhere(&p->guards[i], args[i], &next)) return 0;
  for (int i = 0; i < p->equals; i++) {
    int64_t other = p->equal[i].other;
    if (dims[p->equal[i].dim] != (other < 0 ? -other - 1 : dims[other])) return 0;
  }
  PyObject *given = Py_None, *tuple, *value;
  if (outs != NULL)
    given = tuple_of(outs, p->outputs);
  else if (update && p->updates)
    given = updated_outs(p, args);
  else
    Py_INCREF(given);
  if (given == NULL) return PyErr_Occurred() ? -1 : 0;
  tuple = tuple_of(args, p->inputs);
  value = tuple ? PyObject_CallFunctionObjArgs(p->foreign, tuple, given, NULL) : NULL;
  Py_XDECREF(tuple);
  Py_DECREF(given);
  if (value == NULL) return -1;
  if (p->outputs == 1) return results[0] = value, 1;
  int right = PyTuple_CheckExact(value) && PyTuple_GET_SIZE(value) == p->outputs;
  for (int k = 0; right && k < p->outputs; k++) Py_INCREF(results[k] = PyTuple_GET_ITEM(value, k));
  Py_DECREF(value);
  if (!right) PyErr_SetString(PyExc_TypeError, "the program has other results");
  return right ? 1 : -1;
}

/* Call the program: 1 with its results, 0 if the guards refuse the arguments, -1 after an error. */
static int attempt(Program *p, PyObject *const *args, PyObject *const *outs, int update, PyObject **results) {
  if (p->foreign != NULL) return attempt_foreign(p, args, outs, update, results);
  void *buffers[p->inputs + p->constants + p->outputs + 1];
  int64_t dims[p->dims + 1];
  if (!fits_all(p, args, buffers, dims)) return 0;
  memset(results, 0, (size_t)p->outputs * sizeof *results);
  int64_t bytes = 0;
  int made = make_results(p, args, outs, update, dims, results, &bytes);
  if (made == 1) {
    for (int i = 0; i < p->inputs; i++) bytes += bytes_of(&p->guards[i], args[i]);
    memcpy(buffers + p->inputs, p->constant_data, (size_t)p->constants * sizeof(void *));
    for (int k = 0; k < p->outputs; k++)
      buffers[p->inputs + p->constants + k] = PyArray_DATA((PyArrayObject *)results[k]);
    int64_t scratch = p->arena_bytes ? p->arena_bytes(dims) : p->static_arena;
    if (run(p, buffers, dims, bytes, scratch) == 0) return 1;
    made = -1;
  }
  for (int k = 0; k < p->outputs; k++) Py_XDECREF(results[k]);
  return made;
}

/* ---- Program ------------------------------------------------------------------------------- */

static PyObject *call_miss(PyObject *miss, PyObject *const *args, size_t nargsf, PyObject *names) {
  Py_ssize_t n = PyVectorcall_NARGS(nargsf), named = names ? PyTuple_GET_SIZE(names) : 0;
  PyObject *tuple = PyTuple_New(n), *dict = PyDict_New(), *result = NULL;
  if (tuple == NULL || dict == NULL) goto done;
  for (Py_ssize_t i = 0; i < n; i++) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(tuple, i, args[i]);
  }
  for (Py_ssize_t i = 0; i < named; i++)
    if (PyDict_SetItem(dict, PyTuple_GET_ITEM(names, i), args[n + i]) < 0) goto done;
  result = PyObject_CallFunctionObjArgs(miss, tuple, dict, NULL);
done:
  Py_XDECREF(tuple);
  Py_XDECREF(dict);
  return result;
}

static int is_out(PyObject *name) { return PyUnicode_CompareWithASCIIString(name, "out") == 0; }

/* Read the arrays of `out=`: 1 if they are valid, 0 if `out` needs the slow path. */
static int outs_of(Program *p, PyObject *out, PyObject *const **outs, PyObject **single) {
  if (PyTuple_CheckExact(out) && PyTuple_GET_SIZE(out) == p->outputs) {
    *outs = ((PyTupleObject *)out)->ob_item;
    return 1;
  }
  *single = out;
  *outs = single;
  return p->outputs == 1 && PyArray_CheckExact(out);
}

static PyObject *program_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
  Program *p = (Program *)self;
  PyObject *const *outs = NULL;
  PyObject *single;
  if (PyVectorcall_NARGS(nargsf) == p->inputs) {
    int fast = 1;
    if (names != NULL && PyTuple_GET_SIZE(names) > 0) {
      PyObject *out = args[p->inputs];
      fast = PyTuple_GET_SIZE(names) == 1 && is_out(PyTuple_GET_ITEM(names, 0)) &&
             (out == Py_None || outs_of(p, out, &outs, &single));
    }
    PyObject *results[p->outputs + 1];
    int done = fast ? attempt(p, args, outs, 0, results) : 0;
    if (done) return done < 0 ? NULL : packed(results, p->outputs);
  }
  return call_miss(p->miss, args, nargsf, names);
}

static PyObject *program_invoke(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  Program *p = (Program *)self;
  PyObject *const *outs = NULL;
  PyObject *single;
  if (n != 2 || !PyTuple_CheckExact(args[0]) || PyTuple_GET_SIZE(args[0]) != p->inputs ||
      (args[1] != Py_None && !outs_of(p, args[1], &outs, &single)))
    return PyErr_Format(PyExc_TypeError, "invoke(arguments, outs) takes two tuples");
  PyObject *results[p->outputs + 1];
  int done = attempt(p, ((PyTupleObject *)args[0])->ob_item, outs, outs != NULL, results);
  if (done == 0) PyErr_SetString(PyExc_RuntimeError, "the guards do not let these arrays pass");
  return done == 1 ? packed(results, p->outputs) : NULL;
}

/* Run the code of another program with the same arguments and results from now on.

   The replaced library and its `failed` are kept: other threads may be in them. */
static PyObject *program_replace(PyObject *self, PyObject *other) {
  Program *p = (Program *)self, *q = (Program *)other;
  if (!Py_IS_TYPE(other, Py_TYPE(self)) || p->foreign || q->foreign || p->inputs != q->inputs ||
      p->constants != q->constants || p->outputs != q->outputs || p->dims != q->dims || p->result_dims != q->result_dims)
    return PyErr_Format(PyExc_TypeError, "no program with the same arguments: %R", other);
  PyObject *keep = PyTuple_Pack(3, p->keep, p->failed, q->keep);
  if (keep == NULL) return NULL;
  p->entry = q->entry, p->shapes = q->shapes, p->checks = q->checks, p->arena_bytes = q->arena_bytes;
  p->static_arena = q->static_arena, p->heavy = q->heavy;
  memcpy(p->constant_data, q->constant_data, (size_t)p->constants * sizeof(void *));
  Py_INCREF(q->failed);
  Py_SETREF(p->failed, q->failed);
  Py_SETREF(p->keep, keep);
  Py_RETURN_NONE;
}

static int program_traverse(PyObject *self, visitproc visit, void *arg) {
  Program *p = (Program *)self;
  Py_VISIT(p->keep);
  Py_VISIT(p->miss);
  Py_VISIT(p->failed);
  Py_VISIT(p->foreign);
  return 0;
}

static int program_clear(PyObject *self) {
  Program *p = (Program *)self;
  Py_CLEAR(p->miss);
  Py_CLEAR(p->failed);
  return 0; /* `foreign` is kept: a call may be in progress */
}

static void program_dealloc(PyObject *self) {
  Program *p = (Program *)self;
  PyObject_GC_UnTrack(self);
  program_clear(self);
  Py_CLEAR(p->keep);
  Py_CLEAR(p->foreign);
  if (p->guards)
    for (int i = 0; i < p->inputs + p->outputs; i++) Py_XDECREF(p->guards[i].descr);
  PyMem_Free(p->guards);
  PyMem_Free(p->sizes);
  PyMem_Free(p->equal);
  PyMem_Free(p->into);
  PyMem_Free(p->order);
  PyMem_Free(p->updated);
  PyMem_Free(p->apart);
  PyMem_Free(p->constant_data);
  arena_free(p->arena, p->capacity);
  Py_TYPE(self)->tp_free(self);
}

/* Fill guards from ((dtype, (size, ...)), ...), counting `?` into *dynamic. */
static int read_guards(Program *p, PyObject *specs, int first, npy_intp **sizes, int *dynamic) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(specs); i++) {
    Guard *guard = &p->guards[first + i];
    PyObject *dtype, *shape;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(specs, i), "O!O!", &PyArrayDescr_Type, &dtype, &PyTuple_Type, &shape))
      return 0;
    Py_INCREF(dtype);
    guard->descr = (PyArray_Descr *)dtype;
    guard->type_num = guard->descr->type_num;
    guard->rank = (int)PyTuple_GET_SIZE(shape);
    guard->sizes = *sizes;
    guard->bytes = PyDataType_ELSIZE(guard->descr);
    for (int k = 0; k < guard->rank; k++) {
      npy_intp size = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k));
      if (size == -1 && PyErr_Occurred()) return 0;
      *dynamic += size < 0;
      guard->bytes = size < 0 || guard->bytes < 0 ? -1 : guard->bytes * size;
      *(*sizes)++ = size;
    }
  }
  return 1;
}

static Py_ssize_t ranks(PyObject *specs) {
  Py_ssize_t total = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(specs); i++) {
    PyObject *spec = PyTuple_GET_ITEM(specs, i);
    if (!PyTuple_Check(spec) || PyTuple_GET_SIZE(spec) != 2) return -1;
    Py_ssize_t rank = PyTuple_Check(PyTuple_GET_ITEM(spec, 1)) ? PyTuple_GET_SIZE(PyTuple_GET_ITEM(spec, 1)) : -1;
    if (rank < 0 || rank > NPY_MAXDIMS) return -1;
    total += rank;
  }
  return total;
}

static int read_constants(Program *p, PyObject *constants) {
  for (int i = 0; i < p->constants; i++) {
    PyObject *a = PyTuple_GET_ITEM(constants, i);
    if (!PyArray_Check(a)) return PyErr_SetString(PyExc_TypeError, "constants must be arrays"), 0;
    p->constant_data[i] = PyArray_DATA((PyArrayObject *)a);
  }
  return 1;
}

static int read_equal(Program *p, PyObject *equal) {
  for (int i = 0; i < p->equals; i++) {
    long long other;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(equal, i), "iL", &p->equal[i].dim, &other)) return 0;
    p->equal[i].other = other;
  }
  return 1;
}

/* Read which results overwrite arguments, from ((result, argument), ...). */
static int read_into(Program *p, PyObject *into) {
  for (int k = 0; k < p->outputs; k++) p->into[k] = -1;
  for (int i = 0; i < p->inputs; i++) p->order[i] = i, p->updated[i] = -1;
  p->updates = (int)PyTuple_GET_SIZE(into);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(into); i++) {
    int result, argument;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(into, i), "ii", &result, &argument)) return 0;
    if (result < 0 || result >= p->outputs || argument < 0 || argument >= p->inputs)
      return PyErr_Format(PyExc_ValueError, "no result %d or argument %d", result, argument), 0;
    p->into[result] = argument;
    p->updated[argument] = result;
  }
  return 1;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"entry", "shapes", "checks", "arena", "static_arena", "heavy", "inputs", "constants",
                          "outputs", "equal", "into", "keep", "miss", "failed", "threads", "foreign", NULL};
  Py_ssize_t entry, shapes, checks, arena;
  long long static_arena;
  int heavy, threads;
  PyObject *inputs, *constants, *outputs, *equal, *into, *keep, *miss, *failed, *foreign;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$nnnnLpO!O!O!O!O!OOOiO", names, &entry, &shapes, &checks,
                                   &arena, &static_arena, &heavy, &PyTuple_Type, &inputs, &PyTuple_Type, &constants,
                                   &PyTuple_Type, &outputs, &PyTuple_Type, &equal, &PyTuple_Type, &into, &keep, &miss, &failed,
                                   &threads, &foreign))
    return NULL;
  Py_ssize_t in = ranks(inputs), out = ranks(outputs);
  if (in < 0 || out < 0) return PyErr_Format(PyExc_TypeError, "expected pairs of dtype and shape");
  Program *p = (Program *)type->tp_alloc(type, 0);
  if (p == NULL) return NULL;
  p->vectorcall = program_vectorcall;
  p->entry = (entry_function)entry, p->shapes = (shapes_function)shapes, p->arena_bytes = (arena_function)arena;
  p->checks = (checks_function)checks, p->static_arena = static_arena, p->heavy = heavy;
  p->limited.parallel = sw_parallel, p->limited.threads = threads;
  p->threads = threads > 0 ? &p->limited : &sw_shared;
  p->inputs = (int)PyTuple_GET_SIZE(inputs), p->constants = (int)PyTuple_GET_SIZE(constants);
  p->outputs = (int)PyTuple_GET_SIZE(outputs), p->equals = (int)PyTuple_GET_SIZE(equal);
  p->guards = PyMem_Calloc((size_t)(p->inputs + p->outputs) + 1, sizeof(Guard));
  p->sizes = PyMem_Calloc((size_t)(in + out) + 1, sizeof(npy_intp));
  p->equal = PyMem_Calloc((size_t)p->equals + 1, sizeof *p->equal);
  p->into = PyMem_Calloc((size_t)p->outputs + 1, sizeof *p->into);
  p->order = PyMem_Calloc((size_t)p->inputs + 1, sizeof *p->order);
  p->updated = PyMem_Calloc((size_t)p->inputs + 1, sizeof *p->updated);
  p->apart = PyMem_Calloc((size_t)p->inputs + 1, sizeof(void *));
  p->constant_data = PyMem_Calloc((size_t)p->constants + 1, sizeof(void *));
  keep = PyTuple_Pack(2, keep, constants);
  p->keep = keep;
  Py_INCREF(miss), p->miss = miss;
  Py_INCREF(failed), p->failed = failed;
  if (foreign != Py_None) Py_INCREF(foreign), p->foreign = foreign;
  npy_intp *next = p->sizes;
  if (!p->guards || !p->sizes || !p->equal || !p->into || !p->order || !p->updated || !p->apart || !p->constant_data || !keep)
    PyErr_NoMemory();
  else if (read_guards(p, inputs, 0, &next, &p->dims) &&
           read_guards(p, outputs, p->inputs, &next, &p->result_dims) && read_constants(p, constants) &&
           read_equal(p, equal) && read_into(p, into))
    return (PyObject *)p;
  Py_DECREF(p);
  return NULL;
}

static PyMethodDef program_methods[] = {
    {"invoke", (PyCFunction)(void (*)(void))program_invoke, METH_FASTCALL,
     "invoke(arguments, outs): call without ever asking `miss`."},
    {"replace", program_replace, METH_O, "replace(program): run its code, for the same arguments and results."},
    {NULL, NULL, 0, NULL}};

static PyMemberDef program_members[] = {
    {"arena", T_LONGLONG, offsetof(Program, capacity), READONLY, "Bytes of scratch that are kept between calls."},
    {NULL, 0, 0, 0, NULL}};

static PyTypeObject ProgramType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell.runtime.Program",
    .tp_doc = "A compiled function: arrays in, fresh arrays (or those of out=) out.",
    .tp_basicsize = sizeof(Program),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = program_new,
    .tp_dealloc = program_dealloc,
    .tp_traverse = program_traverse,
    .tp_clear = program_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Program, vectorcall),
    .tp_methods = program_methods,
    .tp_members = program_members,
};

#endif
