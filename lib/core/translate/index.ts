export { translationOf, translationsOf } from './directions.ts'
export type {
  AnswerContext,
  StreamTranslator,
  TranslatedUsage,
  Translation,
} from './translation.ts'
export { Untranslatable } from './translation.ts'
