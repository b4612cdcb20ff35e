/* Dispatcher: calls, as the user writes them, of the first program that fits; else `miss`.

   A program is added with the call it serves, `(names, slots, fixed)`:
     names   the arguments given by name, in the order of the call
     slots   for each argument, those by position first: (first, tree), where its first leaf stands
             among the arrays the program takes, and what it is built like
     fixed   (place, array) for arrays the call leaves to their defaults
   and with the tree of what the function returns. A tree is
     ...                    an array or a number
     None                   None
     3                      of a result: the third from the first, counted from 0
     (class, keys, trees)   a dict with these keys; a tuple or list where `keys` is None
   and for a static value, which must be this very one: of this class, and the same to the bit
     (class, value)         a number, text, a tuple of such; anything else is itself and no other
     (class, names, trees, value)
                            an object with these attributes, or what must be `value` (unless None);
                            the name None stands for the object itself
     (judge, key)           what `judge(value, key)` says is true
   Calls that are built alike are one object, so that of many programs with
   the same arguments each costs no more than its guards. */
#ifndef STEPWELL_DISPATCH_H
#define STEPWELL_DISPATCH_H

#include "call.h"

typedef struct {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject *entries, *miss; /* entries: a list of (program, call, tree) */
  int most, takes_out;      /* arrays that one program takes; whether `out=` is no argument */
} Dispatcher;

typedef struct {
  PyObject *call;    /* what the leaves were collected for, NULL for nothing */
  PyObject **leaves; /* references of ours */
  int count;
} Leaves;

static void forget(Leaves *l) {
  for (int i = 0; i < l->count; i++) Py_CLEAR(l->leaves[i]);
  l->call = NULL;
}

static int is_number(PyObject *value) {
  return PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value);
}

/* A number as an array of the dtype that tracing gives it; NULL without an error if it is none. */
static PyObject *array_of(PyObject *value) {
  PyObject *array;
  if (PyFloat_CheckExact(value)) {
    double number = PyFloat_AS_DOUBLE(value);
    if ((array = PyArray_SimpleNew(0, NULL, NPY_FLOAT64))) *(double *)PyArray_DATA((PyArrayObject *)array) = number;
  } else if (PyBool_Check(value)) {
    if ((array = PyArray_SimpleNew(0, NULL, NPY_BOOL))) *(npy_bool *)PyArray_DATA((PyArrayObject *)array) = value == Py_True;
  } else if (PyLong_CheckExact(value)) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) return NULL;
    if ((array = PyArray_SimpleNew(0, NULL, NPY_INT64))) *(npy_int64 *)PyArray_DATA((PyArrayObject *)array) = number;
  } else {
    return PyArray_IsScalar(value, Generic) ? PyArray_FromScalar(value, NULL) : NULL;
  }
  return array;
}

/* Whether a static value is the one meant: equal is not enough, as 1 == True == 1.0 and 0.0 == -0.0. */
static int is_same(PyObject *a, PyObject *b) {
  if (a == b) return 1;
  if (Py_TYPE(a) != Py_TYPE(b)) return 0;
  if (PyFloat_CheckExact(a)) return memcmp(&((PyFloatObject *)a)->ob_fval, &((PyFloatObject *)b)->ob_fval, sizeof(double)) == 0;
  if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyBytes_CheckExact(a)) return PyObject_RichCompareBool(a, b, Py_EQ);
  if (PyComplex_CheckExact(a)) return memcmp(&((PyComplexObject *)a)->cval, &((PyComplexObject *)b)->cval, sizeof(Py_complex)) == 0;
  if (PyTuple_Check(a)) {
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); i++) {
      int found = is_same(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i));
      if (found != 1) return found;
    }
    return 1;
  }
#define SAME_BITS(kind) \
  if (Py_TYPE(a) == &Py##kind##ArrType_Type) \
    return memcmp(&PyArrayScalar_VAL(a, kind), &PyArrayScalar_VAL(b, kind), sizeof PyArrayScalar_VAL(a, kind)) == 0
  SAME_BITS(Float);
  SAME_BITS(Double);
  SAME_BITS(Half);
  SAME_BITS(CFloat);
  SAME_BITS(CDouble);
#undef SAME_BITS
  if (PyArray_IsScalar(a, Integer)) return PyObject_RichCompareBool(a, b, Py_EQ);
  return 0;
}

/* Whether the keys of a dict are `keys`, which are as many and were all found in it, in their classes too. */
static int are_same_keys(PyObject *keys, PyObject *dict) {
  PyObject *key;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, NULL);) {
    int found = 0;
    for (Py_ssize_t i = 0; found == 0 && i < PyTuple_GET_SIZE(keys); i++) found = is_same(PyTuple_GET_ITEM(keys, i), key);
    if (found != 1) return found;
  }
  return 1;
}

static int collect(PyObject *tree, PyObject *value, PyObject **next, PyObject **end, PyObject ***after);

/* Whether a static value is what `tree` says, which is (class, value), (judge, key) or of an object. */
static int is_meant(PyObject *tree, PyObject *value) {
  PyObject *kind = PyTuple_GET_ITEM(tree, 0), *second = PyTuple_GET_ITEM(tree, 1), **after;
  if (!PyType_Check(kind)) {
    PyObject *said = PyObject_CallFunctionObjArgs(kind, value, second, NULL);
    int found = said ? PyObject_IsTrue(said) : -1;
    Py_XDECREF(said);
    return found;
  }
  if ((PyObject *)Py_TYPE(value) != kind) return 0;
  if (PyTuple_GET_SIZE(tree) == 2) return is_same(second, value);
  if (PyTuple_GET_ITEM(tree, 3) == value && value != Py_None) return 1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(second); i++) {
    PyObject *name = PyTuple_GET_ITEM(second, i), *item = value;
    if (name == Py_None)
      Py_INCREF(item);
    else if ((item = PyObject_GetAttr(value, name)) == NULL)
      return PyErr_ExceptionMatches(PyExc_AttributeError) ? PyErr_Clear(), 0 : -1;
    int found = collect(PyTuple_GET_ITEM(PyTuple_GET_ITEM(tree, 2), i), item, NULL, NULL, &after);
    Py_DECREF(item);
    if (found != 1) return found;
  }
  return 1;
}

/* Collect the leaves of `value` from `*next` on: 1 if it is built like `tree`, 0 if not, -1 after an error. */
static int collect(PyObject *tree, PyObject *value, PyObject **next, PyObject **end, PyObject ***after) {
  *after = next;
  if (tree == Py_Ellipsis || tree == Py_NotImplemented) { /* an array, or a Python number: it takes other dtypes */
    if (next == end || *next != NULL || is_number(value) != (tree == Py_NotImplemented)) return 0;
    if (PyArray_CheckExact(value))
      Py_INCREF(*next = value);
    else if ((*next = array_of(value)) == NULL)
      return PyErr_Occurred() ? -1 : 0;
    *after = next + 1;
    return 1;
  }
  if (tree == Py_None) return value == Py_None;
  if (PyTuple_GET_SIZE(tree) != 3) return is_meant(tree, value);
  PyObject *keys = PyTuple_GET_ITEM(tree, 1), *children = PyTuple_GET_ITEM(tree, 2);
  Py_ssize_t n = PyTuple_GET_SIZE(children);
  if ((PyObject *)Py_TYPE(value) != PyTuple_GET_ITEM(tree, 0)) return 0;
  if ((keys != Py_None ? PyDict_GET_SIZE(value) : Py_SIZE(value)) != n) return 0;
  int plain = 1; /* keys that are text and nothing else, as nearly all are: equal ones are the same */
  Py_ssize_t at = 0;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *child = PyTuple_GET_ITEM(children, i), *item, *key, *met;
    if (keys != Py_None) {
      if (!PyDict_Next(value, &at, &met, &item)) return 0;
      if ((key = PyTuple_GET_ITEM(keys, i)) != met) { /* looking a key up may run code, which may change the dict */
        plain &= PyUnicode_CheckExact(key) & PyUnicode_CheckExact(met);
        if ((item = PyDict_GetItemWithError(value, key)) == NULL)
          return PyErr_Occurred() ? -1 : 0;
      }
    } else if (PyTuple_Check(value)) {
      item = PyTuple_GET_ITEM(value, i);
    } else {
      if (i >= PyList_GET_SIZE(value)) return 0;
      item = PyList_GET_ITEM(value, i);
    }
    if (child == Py_Ellipsis && PyArray_CheckExact(item)) { /* as nearly all are */
      if (next == end || *next != NULL) return 0;
      Py_INCREF(*next++ = item);
      continue;
    }
    Py_INCREF(item);
    int found = collect(child, item, next, end, &next);
    Py_DECREF(item);
    if (found != 1) return found;
  }
  *after = next;
  return plain ? 1 : are_same_keys(keys, value);
}

/* Collect the arrays of a call: 1 if it is like `call`, 0 if not, -1 after an error. `n` by position. */
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

/* Build what `tree` says out of the results from `*next` on, with references of its own. */
static PyObject *build(PyObject *tree, PyObject **results, PyObject ***next) {
  if (tree == Py_Ellipsis || tree == Py_None || PyLong_CheckExact(tree)) {
    PyObject *leaf = tree == Py_None ? Py_None : tree == Py_Ellipsis ? *(*next)++ : results[PyLong_AsLong(tree)];
    Py_INCREF(leaf);
    return leaf;
  }
  PyObject *kind = PyTuple_GET_ITEM(tree, 0), *keys = PyTuple_GET_ITEM(tree, 1), *children = PyTuple_GET_ITEM(tree, 2);
  Py_ssize_t n = PyTuple_GET_SIZE(children);
  PyObject *values = PyTuple_New(n), *built = values;
  for (Py_ssize_t i = 0; values != NULL && i < n; i++) {
    PyObject *value = build(PyTuple_GET_ITEM(children, i), results, next);
    if (value == NULL)
      Py_CLEAR(values);
    else
      PyTuple_SET_ITEM(values, i, value);
  }
  if (values == NULL || kind == (PyObject *)&PyTuple_Type) return values;
  if (kind == (PyObject *)&PyList_Type) {
    built = PySequence_List(values);
  } else if (keys != Py_None) {
    built = PyDict_New();
    for (Py_ssize_t i = 0; built != NULL && i < n; i++)
      if (PyDict_SetItem(built, PyTuple_GET_ITEM(keys, i), PyTuple_GET_ITEM(values, i)) < 0) Py_CLEAR(built);
  } else { /* a named tuple */
    built = PyObject_CallObject(kind, values);
  }
  Py_DECREF(values);
  return built;
}

static PyObject *built(PyObject *tree, PyObject **results, int n) {
  if (tree == Py_Ellipsis && n == 1) return results[0];
  PyObject **next = results, *value = build(tree, results, &next);
  for (int i = 0; i < n; i++) Py_DECREF(results[i]);
  return value;
}

/* Serve a call whose arrays are the right ones but lie in memory as they should not. */
static PyObject *copied(Program *p, PyObject *tree, const Leaves *l) {
  PyObject *value = call_miss(p->miss, l->leaves, (size_t)p->inputs, NULL), *results[p->outputs + 1];
  if (value == NULL || tree == Py_Ellipsis) return value;
  for (int i = 0; i < p->outputs; i++)
    Py_INCREF(results[i] = p->outputs == 1 ? value : PyTuple_GET_ITEM(value, i));
  Py_DECREF(value);
  return built(tree, results, p->outputs);
}

/* Whether the arrays are the program's but for how they lie in memory. */
static int alike(const Program *p, PyObject *const *leaves) {
  for (int i = 0; i < p->inputs; i++) {
    const Guard *guard = &p->guards[i];
    PyArrayObject *a = (PyArrayObject *)leaves[i];
    if (PyArray_TYPE(a) != guard->type_num || PyArray_NDIM(a) != guard->rank) return 0;
    for (int k = 0; k < guard->rank; k++)
      if (PyArray_DIM(a, k) != guard->sizes[k]) return 0;
  }
  return 1;
}

/* Try one entry: its result, or NULL with *missed set if it does not fit. */
static PyObject *try_entry(PyObject *entry, PyObject *const *args, Py_ssize_t n, PyObject *names,
                           Py_ssize_t named, Leaves *l, int *missed) {
  Program *p = (Program *)PyTuple_GET_ITEM(entry, 0);
  PyObject *call = PyTuple_GET_ITEM(entry, 1), *tree = PyTuple_GET_ITEM(entry, 2), *single;
  PyObject *out = names != NULL && named < PyTuple_GET_SIZE(names) ? args[n + named] : Py_None;
  PyObject *const *outs = NULL;
  *missed = 1;
  if (l->call != call) {
    forget(l);
    l->count = p->inputs;
    int found = take_apart(call, args, n, names, named, l);
    if (found < 0) return *missed = 0, NULL;
    if (found == 0) return forget(l), NULL;
    l->call = call;
  }
  if (out != Py_None && !outs_of(p, out, &outs, &single)) return NULL;
  PyObject *results[p->outputs + 1];
  int done = attempt(p, l->leaves, outs, outs == NULL, results);
  *missed = done == 0;
  if (done == 1) return built(tree, results, p->outputs);
  if (done < 0 || outs != NULL || p->updates || !alike(p, l->leaves)) return NULL;
  *missed = 0;
  return copied(p, tree, l);
}

static PyObject *dispatcher_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
  Dispatcher *d = (Dispatcher *)self;
  Py_ssize_t n = PyVectorcall_NARGS(nargsf), named = names ? PyTuple_GET_SIZE(names) : 0;
  if (d->takes_out && named > 0 && is_out(PyTuple_GET_ITEM(names, named - 1))) named--;
  int most = d->most; /* a program added while this call runs may take more: it is not tried */
  PyObject *room[most + 1], *result = NULL;
  memset(room, 0, sizeof room);
  Leaves leaves = {NULL, room, 0};
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

static int is_tree(PyObject *tree);

/* Whether `tree` is (class, names, trees, value). */
static int is_object(PyObject *tree) {
  PyObject *names = PyTuple_GET_ITEM(tree, 1), *children = PyTuple_GET_ITEM(tree, 2);
  if (!PyType_Check(PyTuple_GET_ITEM(tree, 0)) || !PyTuple_Check(names) || !PyTuple_Check(children)) return 0;
  if (PyTuple_GET_SIZE(names) != PyTuple_GET_SIZE(children)) return 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++)
    if (PyTuple_GET_ITEM(children, i) == Py_Ellipsis || !is_tree(PyTuple_GET_ITEM(children, i))) return 0;
  return 1;
}

/* Whether `tree` is one, of what a program with so many `results` returns; 0 for one of arguments. */
static int is_tree_of(PyObject *tree, int results) {
  if (tree == Py_Ellipsis || tree == Py_NotImplemented || tree == Py_None) return 1;
  if (PyLong_CheckExact(tree)) return PyLong_AsLong(tree) >= 0 && PyLong_AsLong(tree) < results;
  if (!PyTuple_Check(tree)) return 0;
  if (PyTuple_GET_SIZE(tree) == 2) return PyType_Check(PyTuple_GET_ITEM(tree, 0)) || PyCallable_Check(PyTuple_GET_ITEM(tree, 0));
  if (PyTuple_GET_SIZE(tree) == 4) return is_object(tree);
  if (PyTuple_GET_SIZE(tree) != 3 || !PyType_Check(PyTuple_GET_ITEM(tree, 0))) return 0;
  PyTypeObject *kind = (PyTypeObject *)PyTuple_GET_ITEM(tree, 0);
  PyObject *keys = PyTuple_GET_ITEM(tree, 1), *children = PyTuple_GET_ITEM(tree, 2);
  if (!PyTuple_Check(children)) return 0;
  if (kind == &PyDict_Type ? !PyTuple_Check(keys) || PyTuple_GET_SIZE(keys) != PyTuple_GET_SIZE(children)
                           : keys != Py_None || (kind != &PyList_Type && !PyType_IsSubtype(kind, &PyTuple_Type)))
    return 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(children); i++)
    if (!is_tree_of(PyTuple_GET_ITEM(children, i), results)) return 0;
  return 1;
}

static int is_tree(PyObject *tree) { return is_tree_of(tree, 0); }

/* Whether `pairs` holds pairs of a place below `places` and what `fits` says. */
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
  PyObject *program, *tree, *names, *slots, *fixed;
  if (!PyArg_ParseTuple(args, "O!(O!O!O!)O", &ProgramType, &program, &PyTuple_Type, &names, &PyTuple_Type,
                        &slots, &PyTuple_Type, &fixed, &tree))
    return NULL;
  int inputs = ((Program *)program)->inputs;
  if (!is_tree_of(tree, ((Program *)program)->outputs) || !are_placed(slots, inputs, is_tree) || !are_placed(fixed, inputs - 1, is_array))
    return PyErr_Format(PyExc_TypeError, "no call of this program: %R", args);
  if (PyList_Append(d->entries, args) < 0) return NULL;
  if (inputs > d->most) d->most = inputs;
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
    {"add", dispatcher_add, METH_VARARGS, "add(program, call, tree): try it after those added before."},
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
