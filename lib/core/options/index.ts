export { catchRejection, checkedFunction, errorOf, inTime, notify, settled } from './app-functions.ts'
export { aCatalog, type CatalogSource, catalogFrom, neededCatalog } from './catalog-source.ts'
export { didYouMean } from './did-you-mean.ts'
export {
  aFunction,
  aKeepTime,
  aListOf,
  aLogger,
  aNumber,
  anArray,
  anObject,
  anObjectWith,
  aPollTime,
  aString,
  aWholeNumber,
  checkOptions,
  kindOf,
  MAX_TIMER_MS,
  type OptionRule,
  type OptionRules,
  oneOf,
  required,
  someMilliseconds,
} from './options.ts'
