// The newest `capacity` items, oldest first, in the order of their time. Everything that the page keeps lies in one of these or
// in a map with a limit, so a page that stays open for a month holds no more than after an hour.
//
// Live messages come nearly in order; history comes late and older. So an item is put where its time belongs, searched from
// the newest end. An item with the time and the name of one that is there is that one, come twice, and is left out.

export class Ring {
  // timeOf(item): a number; nameOf(item): what tells two items of one time apart.
  constructor(capacity, timeOf = (item) => item.at, nameOf = () => "") {
    this.capacity = capacity;
    this.timeOf = timeOf;
    this.nameOf = nameOf;
    this.items = [];
  }

  get length() {
    return this.items.length;
  }

  get last() {
    return this.items[this.items.length - 1];
  }

  // True if it was taken: not there yet, and not older than all of a full ring.
  add(item) {
    const { items, timeOf, nameOf } = this;
    const time = timeOf(item);
    let at = items.length;
    while (at > 0 && timeOf(items[at - 1]) > time) at--;
    for (let i = at - 1; i >= 0 && timeOf(items[i]) === time; i--) {
      if (nameOf(items[i]) === nameOf(item)) return false;
    }
    if (at === 0 && items.length >= this.capacity) return false;
    items.splice(at, 0, item);
    if (items.length > this.capacity) items.shift();
    return true;
  }

  // Drops what is older than `time`.
  forget(time) {
    let count = 0;
    while (count < this.items.length && this.timeOf(this.items[count]) < time) count++;
    if (count) this.items.splice(0, count);
  }

  // Items not older than `time`, oldest first.
  since(time) {
    let at = this.items.length;
    while (at > 0 && this.timeOf(this.items[at - 1]) >= time) at--;
    return this.items.slice(at);
  }

  // The newest item that is not newer than `time`, or undefined.
  before(time) {
    let at = this.items.length;
    while (at > 0 && this.timeOf(this.items[at - 1]) > time) at--;
    return this.items[at - 1];
  }

  [Symbol.iterator]() {
    return this.items[Symbol.iterator]();
  }
}
