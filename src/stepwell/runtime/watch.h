/* Watch: the captured variables and globals of a program, checked before each of its calls.

   It is made of a sequence of looks, each `(kind, holder, key, tree, first, final)`:
     kind    IN_DICT (variables of modules, attributes, items), IN_CELL (closure cells),
             IN_LIST (an item by number), ATTRIBUTE (as `getattr` finds it), ITSELF (the holder)
     tree    the required value, as in trees.h; also False for none, True for any,
             (object, value) for this very object, (ndarray, copy) for an array of this content
     first   the index of its first array among those that the program captures
     final   whether the value is immutable, so that identity suffices
   Looks into the same dictionary are adjacent, final ones first: while the dictionary's version is
   unchanged, final ones are not checked again, and the others' values need not be looked up. */
#ifndef STEPWELL_WATCH_H
#define STEPWELL_WATCH_H

#include "trees.h"

enum { IN_DICT, IN_CELL, IN_LIST, ATTRIBUTE, ITSELF };

/* Python versions dictionaries until 3.13, where nothing else may use the counter. In 3.13 it does
   not count stores to attributes whose values are inlined in the object. */
#if PY_VERSION_HEX >= 0x030E0000 || defined(Py_GIL_DISABLED) || defined(PYPY_VERSION)
#define DICT_VERSION(d) ((uint64_t)0)
#elif PY_VERSION_HEX >= 0x030D0000
#define DICT_VERSION(d) (((PyDictObject *)(d))->ma_values ? 0 : ((PyDictObject *)(d))->ma_version_tag)
#else
#define DICT_VERSION(d) (((PyDictObject *)(d))->ma_version_tag)
#endif

/* A class gets a new tag when it or one of its base classes changes; 0 is none. */
#if PY_VERSION_HEX < 0x030D0000 && !defined(PYPY_VERSION)
#define CLASS_VERSION(t) (PyType_HasFeature((t), Py_TPFLAGS_VALID_VERSION_TAG) ? (t)->tp_version_tag : 0)
#else
#define CLASS_VERSION(t) ((void)(t), 0u)
#endif

typedef struct {
  int kind, final;
  PyObject *holder, *key, *tree;
  PyObject *last;   /* the last value that matched, if it is immutable; an owned reference */
  PyObject *seen;   /* the value at the dictionary's version; a borrowed reference */
  unsigned int tag; /* of the class: while it is unchanged, `last` is its attribute; 0 for none */
  Py_ssize_t first; /* index of its first leaf */
} Look;

typedef struct {
  Py_ssize_t begin, changing, end; /* indices of looks; those from `changing` on are not final */
  uint64_t version;                /* of the dictionary; 0 before the first check */
} Group;

typedef struct {
  PyObject_HEAD
  Py_ssize_t count, groups;
  Look *looks;
  Group *group;
} Watch;

/* Return the current value of a look, a new reference; NULL for none, or after an error. */
static PyObject *looked_up(const Look *look) {
  PyObject *found = NULL;
  switch (look->kind) {
  case IN_DICT: found = PyDict_GetItemWithError(look->holder, look->key); break;
  case IN_CELL: found = PyCell_GET(look->holder); break;
  case IN_LIST: {
    Py_ssize_t at = PyLong_AsSsize_t(look->key);
    if (at >= 0 && at < PyList_GET_SIZE(look->holder)) found = PyList_GET_ITEM(look->holder, at);
    break;
  }
  case ATTRIBUTE:
    found = PyObject_GetAttr(look->holder, look->key);
    if (found == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    return found;
  default: found = look->holder;
  }
  Py_XINCREF(found);
  return found;
}

/* Whether `value`, which may be NULL, matches a look: 1, 0, or -1 after an error. */
static int fits_look(Look *look, PyObject *value, Leaves *l) {
  if (value == NULL) return PyErr_Occurred() ? -1 : look->tree == Py_False;
  if (look->final && value == look->last) return 1;
  PyObject **after;
  int found = collect(look->tree, value, l->leaves + l->outside + look->first, l->leaves + l->count, &after);
  if (found == 1 && look->final) {
    Py_INCREF(value);
    Py_XSETREF(look->last, value);
  }
  return found;
}

/* The tag of a class with this function or property as a plain attribute; 0 for none. */
static unsigned int tag_of(const Look *look, PyObject *value) {
  if (look->kind != ATTRIBUTE || !Py_IS_TYPE(look->holder, &PyType_Type)) return 0;
  if (!PyFunction_Check(value) && !Py_IS_TYPE(value, &PyProperty_Type)) return 0;
  PyTypeObject *type = (PyTypeObject *)look->holder;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); i++) {
    PyObject *names = ((PyTypeObject *)PyTuple_GET_ITEM(type->tp_mro, i))->tp_dict;
    PyObject *found = names ? PyDict_GetItemWithError(names, look->key) : NULL;
    if (found != NULL) return found == value || Py_IS_TYPE(found, &PyStaticMethod_Type) ? CLASS_VERSION(type) : 0;
    if (names == NULL || PyErr_Occurred()) return PyErr_Clear(), 0;
  }
  return 0;
}

static int look_at(Look *look, Leaves *l) {
  PyObject *value = looked_up(look);
  look->seen = value;
  int found = fits_look(look, value, l);
  look->tag = found == 1 && look->final && value != NULL ? tag_of(look, value) : 0;
  Py_XDECREF(value);
  return found;
}

/* Whether a group is unchanged since the last check, as a few instructions tell for most. */
static inline int is_unchanged(const Watch *w, const Group *group) {
  const Look *look = &w->looks[group->begin];
  switch (look->kind) {
  case IN_DICT: return group->changing == group->end && group->version != 0 && group->version == DICT_VERSION(look->holder);
  case IN_CELL: return look->final && look->last != NULL && look->last == PyCell_GET(look->holder);
  case ATTRIBUTE: return look->tag != 0 && look->tag == CLASS_VERSION((PyTypeObject *)look->holder);
  default: return 0;
  }
}

static int watch_group(Watch *w, Group *group, Leaves *l) {
  Look *looks = w->looks;
  PyObject *dict = looks[group->begin].kind == IN_DICT ? looks[group->begin].holder : NULL;
  uint64_t version = dict ? DICT_VERSION(dict) : 0;
  int same = version != 0 && version == group->version;
  for (Py_ssize_t i = same ? group->changing : group->begin; i < group->end; i++) {
    int found;
    if (same && DICT_VERSION(dict) == version) { /* a comparison may run code that changes it */
      PyObject *value = looks[i].seen;
      Py_XINCREF(value);
      found = fits_look(&looks[i], value, l);
      Py_XDECREF(value);
    } else {
      found = look_at(&looks[i], l);
    }
    if (found != 1) return group->version = 0, found;
  }
  group->version = dict && DICT_VERSION(dict) == version ? version : 0;
  return 1;
}

/* Collect the arrays that a program captures: 1, 0 if a value does not match, -1 after an error. */
static int watch_collect(Watch *w, Leaves *l) {
  for (Py_ssize_t i = 0; i < w->groups; i++) {
    if (is_unchanged(w, &w->group[i])) continue;
    int found = watch_group(w, &w->group[i], l);
    if (found != 1) return found;
  }
  return 1;
}

/* Whether no look has an array beyond the `n` that a program takes. */
static int are_looks_within(const Watch *w, int n) {
  for (Py_ssize_t i = 0; i < w->count; i++)
    if (w->looks[i].first > n) return 0;
  return 1;
}

static int watch_traverse(PyObject *self, visitproc visit, void *arg) {
  Watch *w = (Watch *)self;
  for (Py_ssize_t i = 0; i < w->count; i++) {
    Py_VISIT(w->looks[i].holder);
    Py_VISIT(w->looks[i].key);
    Py_VISIT(w->looks[i].tree);
    Py_VISIT(w->looks[i].last);
  }
  return 0;
}

static int watch_clear(PyObject *self) {
  Watch *w = (Watch *)self;
  for (Py_ssize_t i = 0; i < w->count; i++) {
    Py_CLEAR(w->looks[i].last);
    Py_CLEAR(w->looks[i].tree);
    Py_CLEAR(w->looks[i].key);
    Py_CLEAR(w->looks[i].holder);
  }
  w->groups = w->count = 0;
  return 0;
}

static void watch_dealloc(PyObject *self) {
  PyObject_GC_UnTrack(self);
  watch_clear(self);
  PyMem_Free(((Watch *)self)->looks);
  PyMem_Free(((Watch *)self)->group);
  Py_TYPE(self)->tp_free(self);
}

static int is_kind_of_look(const Look *look) {
  switch (look->kind) {
  case IN_DICT: return PyDict_Check(look->holder);
  case IN_CELL: return PyCell_Check(look->holder);
  case IN_LIST: return PyList_Check(look->holder) && PyLong_Check(look->key);
  case ATTRIBUTE: return PyUnicode_Check(look->key);
  default: return look->kind == ITSELF;
  }
}

static int read_look(PyObject *told, Look *look) {
  PyObject *holder, *key, *tree;
  if (!PyTuple_Check(told) || !PyArg_ParseTuple(told, "iOOOnp", &look->kind, &holder, &key, &tree, &look->first, &look->final))
    return 0;
  look->holder = holder, look->key = key, look->tree = tree;
  if (!is_kind_of_look(look) || !is_tree(tree) || look->first < 0)
    return PyErr_Format(PyExc_TypeError, "no look: %R", told), look->holder = look->key = look->tree = NULL, 0;
  Py_INCREF(holder), Py_INCREF(key), Py_INCREF(tree);
  return 1;
}

static PyObject *watch_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  PyObject *told;
  if (kwargs != NULL && PyDict_GET_SIZE(kwargs)) return PyErr_Format(PyExc_TypeError, "Watch takes no keywords");
  if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &told)) return NULL;
  Watch *w = (Watch *)type->tp_alloc(type, 0);
  if (w == NULL) return NULL;
  Py_ssize_t n = PyTuple_GET_SIZE(told);
  w->looks = PyMem_Calloc((size_t)n + 1, sizeof(Look));
  w->group = PyMem_Calloc((size_t)n + 1, sizeof(Group));
  if (w->looks == NULL || w->group == NULL) {
    Py_DECREF(w);
    return PyErr_NoMemory();
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    Look *look = &w->looks[i];
    w->count = i + 1;
    if (!read_look(PyTuple_GET_ITEM(told, i), look)) {
      w->count = i;
      Py_DECREF(w);
      return NULL;
    }
    Group *last = w->groups ? &w->group[w->groups - 1] : NULL;
    if (last == NULL || look->kind != IN_DICT || w->looks[last->begin].kind != IN_DICT || look->holder != w->looks[last->begin].holder) {
      last = &w->group[w->groups++];
      last->begin = last->changing = i;
    }
    last->end = i + 1;
    if (look->final && last->changing == i) last->changing = i + 1;
  }
  return (PyObject *)w;
}

static PyTypeObject WatchType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stepwell.runtime.Watch",
    .tp_doc = "Watch(looks): what a program reads outside of its function.",
    .tp_basicsize = sizeof(Watch),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = watch_new,
    .tp_dealloc = watch_dealloc,
    .tp_traverse = watch_traverse,
    .tp_clear = watch_clear,
};

#endif
