export { checkOptions, type OptionRules } from './check-options.ts'
export {
  aFunction,
  aKeepTime,
  aListOf,
  aLogger,
  aNumber,
  anArray,
  anObject,
  anObjectWith,
  aString,
  aWholeNumber,
  kindOf,
  MAX_TIMER_MS,
  type OptionRule,
  oneOf,
  required,
  someMilliseconds,
} from './option-rules.ts'
