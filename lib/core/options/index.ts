export { checkOptions, type OptionRules } from './check-options.ts'
export {
  aFunction,
  aListOf,
  aLogger,
  aNumber,
  anArray,
  anObject,
  anObjectWith,
  aString,
  aWholeNumber,
  kindOf,
  type OptionRule,
  oneOf,
  required,
  someMilliseconds,
} from './option-rules.ts'
