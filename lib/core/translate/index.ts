export { translationOf, translationsOf } from './directions.ts'
export type {
  AnswerContext,
  StreamTranslator,
  TranslatedUsage,
  Translation,
  Translator,
} from './translation.ts'
export { Untranslatable } from './translation.ts'
export { UniqueIds } from './unique-ids.ts'
