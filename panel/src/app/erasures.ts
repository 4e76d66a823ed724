// What is scheduled to be erased: every change to it answers with the fields that the settings show.
import { graphql } from '../api/graphql'

export const ErasureFields = graphql(`
  fragment ErasureFields on Organization @_unmask {
    id
    erasures { id subject userId contactId state dueAt }
  }
`)
