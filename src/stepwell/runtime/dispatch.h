/* Dispatcher: runs a call, as the user writes it, by the first program that fits; else `miss`.

   A program is added with the call it serves, `(names, slots, fixed)`:
     names   the keyword arguments, in the order of the call
     slots   for each argument, positional ones first: (first, tree), the index of its first leaf
             among the program's arrays, and its structure
     fixed   (place, array) for arrays of default arguments
   and with the tree (trees.h) of the function's result, its captured variables and globals
   (watch.h), and the number of arrays taken from these, which come last.
   A program with `?` may be restricted to given sizes.
   Equal calls are one object, so that many programs with the same arguments each cost only their
   guards. */
#ifndef STEPWELL_DISPATCH_H
#define STEPWELL_DISPATCH_H

#include "watch.h"

typedef struct {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject *entries, *miss; /* entries: a list of (program, call, tree, watch, outside, sizes) */
  int most, takes_out;      /* the maximum arrays of a program; whether `out=` is special */
} Dispatcher;

/* Collect a call's arrays: 1 if it matches `call`, 0 if not, -1 after error. `n` are positional. */
static int take_apart(PyObject *call, PyObject *const *args, Py_ssize_t n, PyObject *names,
                      Py_ssize_t named, Leaves *l) {
  PyObject *wanted = PyTuple_GET_ITEM(call, 0), *slots = PyTuple_GET_ITEM(call, 1), *fixed = PyTuple_GET_ITEM(call, 2);
  if (PyTuple_GET_SIZE(slots) != n + named || PyTuple_GET_SIZE(wanted) != named) return 0;
  for (Py_ssize_t i = 0; i < named; i++) {
    PyObject *a = PyTuple_GET_ITEM(wanted, i), *b = PyTuple_GET_ITEM(names, i);
    if (a != b && PyUnicode_Compare(a, b) != 0) return 0;
  }
  for (Py_ssize_t i = 0; i < n + named; i++) {
    PyObject *slot = PyTuple_GET_ITEM(slots, i), **after;
    Py_ssize_t first = PyLong_AsSsize_t(PyTuple_GET_ITEM(slot, 0));
    int found = collect(PyTuple_GET_ITEM(slot, 1), args[i], l->leaves + first, l->leaves + l->count, &after);
    if (found != 1) return found;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fixed); i++) {
    PyObject *pair = PyTuple_GET_ITEM(fixed, i), **leaf = l->leaves + PyLong_AsSsize_t(PyTuple_GET_ITEM(pair, 0));
    if (*leaf != NULL) return 0;
    Py_INCREF(*leaf = PyTuple_GET_ITEM(pair, 1));
  }
  for (int i = 0; i < l->count; i++)
    if (l->leaves[i] == NULL) return 0;
  return 1;
}

/* Build an object from its children: one with these attributes, or one that Python code makes. */
static PyObject *put_together(PyObject *tree, PyObject *values) {
  PyObject *names = PyTuple_GET_ITEM(tree, 3);
  if (names == Py_None) return PyObject_CallOneArg(PyTuple_GET_ITEM(tree, 1), values);
  PyObject *none = PyTuple_New(0), *made;
  if (none == NULL) return NULL;
  made = PyBaseObject_Type.tp_new((PyTypeObject *)PyTuple_GET_ITEM(tree, 0), none, NULL); /* no __init__ */
  Py_DECREF(none);
  for (Py_ssize_t i = 0; made != NULL && i < PyTuple_GET_SIZE(values); i++)
    if (PyObject_GenericSetAttr(made, PyTuple_GET_ITEM(names, i), PyTuple_GET_ITEM(values, i)) < 0) Py_CLEAR(made);
  return made;
}

static PyObject *build_inner(PyObject *tree, PyObject **results, PyObject ***next);

/* Build the value of `tree` from the results from `*next` on, with its own references. */
static inline PyObject *build(PyObject *tree, PyObject **results, PyObject ***next) {
  if (tree != Py_Ellipsis) return build_inner(tree, results, next);
  PyObject *leaf = *(*next)++;
  Py_INCREF(leaf);
  return leaf;
}

static PyObject *build_inner(PyObject *tree, PyObject **results, PyObject ***next) {
  if (tree == Py_None || PyLong_CheckExact(tree)) {
    PyObject *leaf = tree == Py_None ? Py_None : results[PyLong_AsLong(tree)];
    Py_INCREF(leaf);
    return leaf;
  }
  int object = PyTuple_GET_SIZE(tree) == 5;
  PyObject *kind = PyTuple_GET_ITEM(tree, 0), *keys = PyTuple_GET_ITEM(tree, 1), *children = PyTuple_GET_ITEM(tree, object ? 4 : 2);
  Py_ssize_t n = PyTuple_GET_SIZE(children);
  if (!object && (keys != Py_None || kind == (PyObject *)&PyList_Type)) {
    PyObject *made = keys != Py_None ? PyDict_New() : PyList_New(n);
    for (Py_ssize_t i = 0; made != NULL && i < n; i++) {
      PyObject *value = build(PyTuple_GET_ITEM(children, i), results, next);
      if (value == NULL) {
        Py_CLEAR(made);
      } else if (keys == Py_None) {
        PyList_SET_ITEM(made, i, value);
      } else {
        if (PyDict_SetItem(made, PyTuple_GET_ITEM(keys, i), value) < 0) Py_CLEAR(made);
        Py_DECREF(value);
      }
    }
    return made;
  }
  /* a tuple, or a named tuple without its own constructor, which `dispatched` ensures */
  PyTypeObject *of = object ? &PyTuple_Type : (PyTypeObject *)kind;
  PyObject *values = of == &PyTuple_Type ? PyTuple_New(n) : of->tp_alloc(of, n), *built = values;
  for (Py_ssize_t i = 0; values != NULL && i < n; i++) {
    PyObject *value = build(PyTuple_GET_ITEM(children, i), results, next);
    if (value == NULL)
      Py_CLEAR(values);
    else
      PyTuple_SET_ITEM(values, i, value);
  }
  if (values == NULL || !object) return values;
  built = put_together(tree, values);
  Py_DECREF(values);
  return built;
}

static PyObject *built(PyObject *tree, PyObject **results, int n) {
  if (tree == Py_Ellipsis && n == 1) return results[0];
  PyObject **next = results, *value = build(tree, results, &next);
  for (int i = 0; i < n; i++) Py_DECREF(results[i]);
  return value;
}

/* Serve a call whose arrays match except for their memory layout. */
static PyObject *copied(Program *p, PyObject *tree, const Leaves *l) {
  PyObject *value = call_miss(p->miss, l->leaves, (size_t)p->inputs, NULL), *results[p->outputs + 1];
  if (value == NULL || tree == Py_Ellipsis) return value;
  for (int i = 0; i < p->outputs; i++)
    Py_INCREF(results[i] = p->outputs == 1 ? value : PyTuple_GET_ITEM(value, i));
  Py_DECREF(value);
  return built(tree, results, p->outputs);
}

/* Whether the arrays match the program's except for their memory layout. */
static int alike(const Program *p, PyObject *const *leaves) {
  for (int i = 0; i < p->inputs; i++) {
    const Guard *guard = &p->guards[i];
    PyArrayObject *a = (PyArrayObject *)leaves[i];
    if (is_resident(leaves[i])) return 0;
    if (PyArray_TYPE(a) != guard->type_num || PyArray_NDIM(a) != guard->rank) return 0;
    for (int k = 0; k < guard->rank; k++)
      if (PyArray_DIM(a, k) != guard->sizes[k]) return 0;
  }
  return 1;
}

/* Store the sizes of an array, on the host or on a device; return its rank. */
static int sizes_of(PyObject *leaf, npy_intp *sizes) {
  if (is_resident(leaf)) return resident_sizes(leaf, sizes);
  PyArrayObject *a = (PyArrayObject *)leaf;
  for (int k = 0; k < PyArray_NDIM(a); k++) sizes[k] = PyArray_DIM(a, k);
  return PyArray_NDIM(a);
}

/* Whether the `?` of the first `n` arrays equal `sizes`, 64-bit numbers in a row; None for any. */
static int are_sizes(const Program *p, PyObject *const *leaves, int n, PyObject *sizes) {
  if (sizes == Py_None) return 1;
  const char *next = PyBytes_AS_STRING(sizes), *end = next + PyBytes_GET_SIZE(sizes);
  for (int i = 0; i < n; i++) {
    const Guard *guard = &p->guards[i];
    npy_intp room[NPY_MAXDIMS];
    if (sizes_of(leaves[i], room) != guard->rank) return 0;
    for (int k = 0; k < guard->rank; k++) {
      if (guard->sizes[k] >= 0) continue;
      int64_t size;
      if (next == end) return 0;
      memcpy(&size, next, sizeof size);
      if (room[k] != size) return 0;
      next += sizeof size;
    }
  }
  return next == end;
}

/* Whether the dtypes and sizes of the first `n` arrays may match the program's. */
static int may_fit(const Program *p, PyObject *const *leaves, int n) {
  for (int i = 0; i < n; i++) {
    const Guard *guard = &p->guards[i];
    npy_intp room[NPY_MAXDIMS];
    int type = is_resident(leaves[i]) ? resident_dtype(leaves[i])->type_num : PyArray_TYPE((PyArrayObject *)leaves[i]);
    if (type != guard->type_num || sizes_of(leaves[i], room) != guard->rank) return 0;
    for (int k = 0; k < guard->rank; k++)
      if (guard->sizes[k] >= 0 && room[k] != guard->sizes[k]) return 0;
  }
  return 1;
}

/* Collect the arrays that an entry's program captures: 1, 0 if changed, or -1 after an error. */
static int collect_outside(PyObject *watch, const Program *p, Leaves *l, int given) {
  if (watch == Py_None) return 1;
  if (!may_fit(p, l->leaves, given)) return 0;
  l->count = p->inputs, l->outside = given;
  int found = watch_collect((Watch *)watch, l);
  for (int i = given; found == 1 && i < l->count; i++) found = l->leaves[i] != NULL;
  if (found == 1) return 1;
  for (int i = given; i < l->count; i++) Py_CLEAR(l->leaves[i]);
  l->count = given;
  return found;
}

/* Try one entry: return its result, or NULL with *missed set if it does not fit. */
static PyObject *try_entry(PyObject *entry, PyObject *const *args, Py_ssize_t n, PyObject *names,
                           Py_ssize_t named, Leaves *l, int *missed) {
  Program *p = (Program *)PyTuple_GET_ITEM(entry, 0);
  PyObject *call = PyTuple_GET_ITEM(entry, 1), *tree = PyTuple_GET_ITEM(entry, 2), *single;
  PyObject *out = names != NULL && named < PyTuple_GET_SIZE(names) ? args[n + named] : Py_None;
  PyObject *const *outs = NULL;
  int given = p->inputs - (int)PyLong_AsLong(PyTuple_GET_ITEM(entry, 4));
  *missed = 1;
  if (l->call != call) {
    forget(l);
    l->count = given;
    int found = take_apart(call, args, n, names, named, l);
    if (found < 0) return *missed = 0, NULL;
    if (found == 0) return forget(l), NULL;
    Py_INCREF(l->call = call);
  }
  if (out != Py_None && !outs_of(p, out, &outs, &single)) return NULL;
  if (!are_sizes(p, l->leaves, given, PyTuple_GET_ITEM(entry, 5))) return NULL;
  int found = collect_outside(PyTuple_GET_ITEM(entry, 3), p, l, given);
  if (found != 1) return *missed = found == 0, NULL;
  PyObject *results[p->outputs + 1];
  int done = attempt(p, l->leaves, outs, outs == NULL, results);
  *missed = done == 0;
  if (done == 1) return built(tree, results, p->outputs);
  if (done == 0 && outs == NULL && !p->updates && alike(p, l->leaves)) {
    *missed = 0;
    return copied(p, tree, l);
  }
  for (int i = given; i < l->count; i++) Py_CLEAR(l->leaves[i]);
  l->count = given;
  return NULL;
}

static PyObject *dispatcher_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
  Dispatcher *d = (Dispatcher *)self;
  Py_ssize_t n = PyVectorcall_NARGS(nargsf), named = names ? PyTuple_GET_SIZE(names) : 0;
  if (d->takes_out && named > 0 && is_out(PyTuple_GET_ITEM(names, named - 1))) named--;
  int most = d->most; /* programs added during this call may take more arrays: they are not tried */
  PyObject *room[most + 1], *result = NULL;
  memset(room, 0, sizeof room);
  Leaves leaves = {NULL, room, 0, 0};
  int missed = 1;
  for (Py_ssize_t i = 0; missed && i < PyList_GET_SIZE(d->entries); i++) {
    PyObject *entry = PyList_GET_ITEM(d->entries, i);
    if (((Program *)PyTuple_GET_ITEM(entry, 0))->inputs > most) continue;
    Py_INCREF(entry);
    result = try_entry(entry, args, n, names, named, &leaves, &missed);
    Py_DECREF(entry);
  }
  forget(&leaves);
  return missed ? call_miss(d->miss, args, nargsf, names) : result;
}

/* Whether `pairs` contains pairs of an index below `places` and a value accepted by `fits`. */
static int are_placed(PyObject *pairs, Py_ssize_t places, int (*fits)(PyObject *)) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pairs); i++) {
    PyObject *second;
    Py_ssize_t place;
    if (!PyTuple_Check(PyTuple_GET_ITEM(pairs, i)) || !PyArg_ParseTuple(PyTuple_GET_ITEM(pairs, i), "nO", &place, &second))
      return PyErr_Clear(), 0;
    if (place < 0 || place > places || !fits(second)) return 0;
  }
  return 1;
}

static int is_array(PyObject *o) { return PyArray_CheckExact(o); }

static PyObject *dispatcher_add(PyObject *self, PyObject *args) {
  Dispatcher *d = (Dispatcher *)self;
  PyObject *program, *tree, *names, *slots, *fixed, *watch = Py_None, *sizes = Py_None, *entry;
  int outside = 0;
  if (!PyArg_ParseTuple(args, "O!(O!O!O!)O|OiO", &ProgramType, &program, &PyTuple_Type, &names, &PyTuple_Type,
                        &slots, &PyTuple_Type, &fixed, &tree, &watch, &outside, &sizes))
    return NULL;
  if (sizes != Py_None && (!PyBytes_CheckExact(sizes) || PyBytes_GET_SIZE(sizes) % (Py_ssize_t)sizeof(int64_t)))
    return PyErr_Format(PyExc_TypeError, "no sizes: %R", sizes);
  int inputs = ((Program *)program)->inputs - outside;
  if (outside < 0 || inputs < 0 || (watch == Py_None ? outside : !Py_IS_TYPE(watch, &WatchType)))
    return PyErr_Format(PyExc_TypeError, "no arrays from outside of the function: %R", args);
  if (watch != Py_None && !are_looks_within((Watch *)watch, outside))
    return PyErr_Format(PyExc_TypeError, "the program takes no such arrays: %R", args);
  if (!is_tree_of(tree, ((Program *)program)->outputs) || !are_placed(slots, inputs, is_tree) || !are_placed(fixed, inputs - 1, is_array))
    return PyErr_Format(PyExc_TypeError, "no call of this program: %R", args);
  if ((entry = Py_BuildValue("OOOOiO", program, PyTuple_GET_ITEM(args, 1), tree, watch, outside, sizes)) == NULL) return NULL;
  int failed = PyList_Append(d->entries, entry);
  Py_DECREF(entry);
  if (failed < 0) return NULL;
  if (((Program *)program)->inputs > d->most) d->most = ((Program *)program)->inputs;
  Py_RETURN_NONE;
}

static PyObject *dispatcher_forget(PyObject *self, PyObject *unused) {
  (void)unused;
  Dispatcher *d = (Dispatcher *)self;
  if (PyList_SetSlice(d->entries, 0, PyList_GET_SIZE(d->entries), NULL) < 0) return NULL;
  Py_RETURN_NONE;
}

static PyObject *dispatcher_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"miss", "takes_out", NULL};
  PyObject *miss;
  int takes_out = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|p", names, &miss, &takes_out)) return NULL;
  Dispatcher *d = (Dispatcher *)type->tp_alloc(type, 0);
  if (d == NULL) return NULL;
  d->vectorcall = dispatcher_vectorcall;
  d->takes_out = takes_out;
  Py_INCREF(miss), d->miss = miss;
  if ((d->entries = PyList_New(0)) == NULL) Py_CLEAR(d);
  return (PyObject *)d;
}

static int dispatcher_traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(((Dispatcher *)self)->entries);
  Py_VISIT(((Dispatcher *)self)->miss);
  return 0;
}

static int dispatcher_clear(PyObject *self) {
  Py_CLEAR(((Dispatcher *)self)->miss);
  return 0;
}

static void dispatcher_dealloc(PyObject *self) {
  PyObject_GC_UnTrack(self);
  dispatcher_clear(self);
  Py_CLEAR(((Dispatcher *)self)->entries);
  Py_TYPE(self)->tp_free(self);
}

static PyMethodDef dispatcher_methods[] = {
    {"add", dispatcher_add, METH_VARARGS, "add(program, call, tree, watch=None, outside=0, sizes=None): try it after those added before."},
    {"clear", dispatcher_forget, METH_NOARGS, "clear(): forget every program that was added."},
    {NULL, NULL, 0, NULL}};

static PyTypeObject DispatcherType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell.runtime.Dispatcher",
    .tp_doc = "Dispatcher(miss, takes_out=True): calls the first program that fits, else miss(args, kwargs).",
    .tp_basicsize = sizeof(Dispatcher),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = dispatcher_new,
    .tp_dealloc = dispatcher_dealloc,
    .tp_traverse = dispatcher_traverse,
    .tp_clear = dispatcher_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Dispatcher, vectorcall),
    .tp_methods = dispatcher_methods,
};

#endif
